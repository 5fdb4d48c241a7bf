#pragma once
// What every data set is, whatever file it came from: a number of samples, each with the same fields, and a way to get
// sample `index` written straight into the caller's memory.
//
// A sample may be randomised (augmentation, random windows of a text, shuffling), but only as a pure function of
// (seed, epoch, index): nothing is consumed, so any sample can be asked for at any time, by any thread, on any worker,
// again after a restart, and is the same bits.
//
// Behaviour is added by decorators of the same type (data/decorators.h, data/images/transform.h). The usual tower is
// shuffled(mapped(cached(opened file))), under a Loader (data/loader.h).
//
// Errors: whatever is wrong with the outside bytes is a BadInput naming file and place. Thread-safe: `get` and
// everything else that is const may be called by several threads at once. `get` allocates nothing in the steady state
// (except inside the image decoding libraries).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace echelon::data {

class Vocabulary;
class TableEncoder;
struct TableFile;
struct Neighbourhood;

constexpr std::size_t most_fields = 16;  // of a sample

// One part of every sample: "image" f32 [1, 28, 28], "label" i32 [].
struct Field {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  // i32 only: how many different ids each element may have (0 .. n - 1), as of a table's columns; empty if not known.
  std::vector<std::int64_t> categories = {};

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  bool operator==(const Field&) const = default;
};

std::string to_string(const Field& field);  // "image f32 [1, 28, 28]"

// Where a sample lies: one pointer a field, each with room for that field and aligned for its elements.
using SampleRef = std::span<std::byte* const>;

// What the random part of a sample may depend on, besides its index.
struct SampleContext {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
};

// One number to be predicted, and how it was standardised: original = mean + deviation * target.
struct TargetColumn {
  std::string name;
  double mean = 0, deviation = 1;
  bool binary = false;  // it is 0 or 1: one of several labels
};

struct DatasetInfo {
  std::uint64_t size = 0;
  std::vector<Field> fields;  // the inputs, which the model reads; then, if there, what the loss compares with
  std::size_t inputs = 1;     // how many of the fields are inputs: fields[inputs] is the target
  std::int64_t classes = 0;   // labels are 0 .. classes - 1; 0 when the samples have no class
  std::vector<std::string> class_names;  // empty, or one for each class
  std::vector<TargetColumn> targets;     // of a table: one for each element of a target that is numbers; else empty
  std::shared_ptr<const Vocabulary> vocabulary;  // of a text, else null
  std::shared_ptr<const TableEncoder> table;     // how the rows of a table became these samples, else null
  std::shared_ptr<const TableFile> table_rows;   // of a table that is not encoded yet (data/table/open_table.h)
  std::shared_ptr<const TableFile> table_file;   // whose rows these samples are (origin() says which), else null
  std::shared_ptr<const std::vector<std::string>> files;  // of pictures in folders: each one's path (by origin())
  std::shared_ptr<const Neighbourhood> neighbourhood;     // of the nodes of a graph (data/graph/), else null
  std::vector<std::string> notes;  // what was found, filled in or left out: sentences, to be shown
  std::int64_t streams = 0;        // > 0: sample i continues sample i - streams; must stay in order, batch == streams
  bool random = false;             // samples depend on the context
  std::string fingerprint;  // a hash of the content, so that resuming with other data can be refused. Decorators that
                            // only change order or presentation leave it alone.
};

class Dataset {
 public:
  explicit Dataset(DatasetInfo info) : info_(std::move(info)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const DatasetInfo& info() const { return info_; }
  std::uint64_t size() const { return info_.size; }
  const std::vector<Field>& fields() const { return info_.fields; }

  // Writes sample `index` (< size()) to `out`, which has one pointer for each field.
  virtual void get(std::uint64_t index, const SampleContext& context, SampleRef out) const = 0;

  // The class of a sample, where has_labels(info()). Overridden where it is known without reading the sample.
  virtual std::int32_t label(std::uint64_t index) const;

  // Which sample of the undecorated data set `index` is: what a ledger writes down.
  virtual std::uint64_t origin(std::uint64_t index, const SampleContext&) const { return index; }

 protected:
  DatasetInfo& info() { return info_; }

 private:
  DatasetInfo info_;
};

// Memory for one sample of given fields.
class Sample {
 public:
  explicit Sample(std::span<const Field> fields);
  SampleRef ref() { return pointers_; }
  template <typename T>
  std::span<T> field(std::size_t i) {
    return memory_[i].as<T>();
  }

 private:
  std::vector<Buffer> memory_;
  std::vector<std::byte*> pointers_;
};

// Whether every sample has one class as its target.
bool has_labels(const DatasetInfo& info);

// The index of the field with that name, or -1.
int find_field(std::span<const Field> fields, std::string_view name);

}  // namespace echelon::data
