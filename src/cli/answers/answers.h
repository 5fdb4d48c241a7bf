#pragma once
// What a network says, in words and numbers that people can use: names of classes or labels with probabilities, numbers
// in the units of the data. Written as CSV, JSON lines, an array (NPY), or a line for people.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace echelon::cli {

enum class AnswerFormat { lines, csv, jsonl, npy };

// What the numbers of an answer mean.
struct AnswerMeaning {
  enum class Kind {
    classes,  // probabilities of classes, one of which is right
    labels,   // probabilities of labels, each of which holds or does not
    numbers
  };
  Kind kind = Kind::classes;
  std::vector<std::string> names;                            // of the classes, labels or numbers
  std::function<double(std::size_t, double)> original = {};  // a number in the data's own units; empty: as it is
  int top = 3;                                               // how many classes lines and JSON name
};

// Immutable; rows may be made by many threads at once.
class AnswerText {
 public:
  AnswerText(AnswerFormat format, AnswerMeaning meaning, std::function<std::string(std::uint64_t)> input_name);

  std::string header(std::uint64_t samples) const;  // before the first row; may be empty
  void add_row(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;

 private:
  void add_line(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_csv(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_json(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_npy(std::string& out, std::span<const float> numbers) const;
  bool is(AnswerMeaning::Kind kind) const { return meaning_.kind == kind; }
  double number(std::size_t i, std::span<const float> numbers) const;
  bool all_classes() const;  // whether rows have the probabilities of all

  AnswerFormat format_;
  AnswerMeaning meaning_;
  std::vector<std::string> json_names_;  // in quotes
  std::vector<std::string> json_keys_;   // the same as keys of one object: with a colon behind, and a comma before
  std::function<std::string(std::uint64_t)> input_name_;
};

// By the end of a file's name (.csv, .jsonl, .npy); BadInput for any other.
AnswerFormat answer_format_of(const std::string& file);
AnswerFormat answer_format_named(const std::string& name);

}  // namespace echelon::cli
