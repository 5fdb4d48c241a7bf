#pragma once
// What a network says, in words and numbers that people can use: names of classes with probabilities, numbers in the
// units of the data. Written as CSV, JSON lines, an array (NPY), or a line for people.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace echelon::cli {

enum class AnswerFormat { lines, csv, jsonl, npy };

// What the numbers of an answer mean.
struct AnswerMeaning {
  bool classes = true;                                       // probabilities of classes; else numbers
  std::vector<std::string> names;                            // of the classes, or of the numbers
  std::function<double(std::size_t, double)> original = {};  // a number in the data's own units; empty: as it is
  int top = 3;                                               // how many classes lines and JSON name
};

// Immutable; rows may be made by many threads at once.
class AnswerText {
 public:
  AnswerText(AnswerFormat format, AnswerMeaning meaning, std::function<std::string(std::uint64_t)> input_name)
      : format_(format), meaning_(std::move(meaning)), input_name_(std::move(input_name)) {}

  std::string header(std::uint64_t samples) const;  // before the first row; may be empty
  void add_row(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;

 private:
  void add_line(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_csv(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_json(std::string& out, std::uint64_t sample, std::span<const float> numbers) const;
  void add_npy(std::string& out, std::span<const float> numbers) const;
  double number(std::size_t i, std::span<const float> numbers) const;
  bool all_classes() const { return meaning_.names.size() <= 100; }  // more would make rows that nobody reads

  AnswerFormat format_;
  AnswerMeaning meaning_;
  std::function<std::string(std::uint64_t)> input_name_;
};

// By the end of a file's name (.csv, .jsonl, .npy); BadInput for any other.
AnswerFormat answer_format_of(const std::string& file);
AnswerFormat answer_format_named(const std::string& name);

}  // namespace echelon::cli
