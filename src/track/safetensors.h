#pragma once
// The safetensors layout: eight bytes with the length of a JSON header, the header (name -> dtype, shape, range of
// bytes), then the tensors' bytes, row-major and little-endian, without gaps. Everyone can read it and nothing in it
// can be executed.
//
// The reader trusts nothing: it checks the header's size before it allocates, every product and range, that the ranges
// cover the file exactly once, that no name occurs twice. What it refuses is a BadInput that names file, offset, what
// was expected and what was found. An object belongs to one thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "tensor/view.h"
#include "track/hashed_file.h"
#include "world/os/disk.h"

namespace echelon {

using Metadata = std::map<std::string, std::string>;

// Writes the file, hashed and synced. Tensors lie in the order of element size (largest first), then of name.
FileDigest write_safetensors(Disk& disk, const std::string& path, std::span<const TensorView> tensors,
                             const Metadata& metadata = {});

struct StoredTensor {
  std::string name;
  std::string stored;        // the element type as the file calls it: F32, BF16, I64 ...
  DType dtype = DType::f32;  // of F32, I32 and U8, which this program computes with; others can be read as floats
  Shape shape;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;

  std::string_view type_name() const;  // "f32" as everywhere in this program, and the file's word for other types
};

class SafetensorsFile {
 public:
  static constexpr std::uint64_t max_header_bytes = 32u << 20;
  static constexpr std::size_t max_tensors = 100'000;

  // Reads and checks the header; the tensors' bytes stay on disk until asked for.
  SafetensorsFile(Disk& disk, const std::string& path);
  SafetensorsFile(std::unique_ptr<File> file, std::string name_for_messages);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // sorted by name
  const Metadata& metadata() const { return metadata_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr if absent

  void read(const StoredTensor& tensor, std::span<std::byte> into);  // `into` has tensor.bytes bytes
  Tensor read(std::string_view name);                                // BadInput if absent, or not of a type of ours
  static bool is_float(const StoredTensor& tensor);                  // F64, F32, F16 or BF16
  std::vector<float> read_floats(const StoredTensor& tensor);        // of such a one

  // Fills all slots. BadInput, before anything is filled, that lists every slot without a tensor, tensor without a
  // slot, and difference in dtype or shape.
  void read_all(std::span<const TensorSlot> slots);

 private:
  void read_header();

  std::unique_ptr<File> file_;
  std::string path_;
  std::vector<StoredTensor> tensors_;
  Metadata metadata_;
};

}  // namespace echelon
