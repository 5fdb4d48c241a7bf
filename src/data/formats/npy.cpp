#include "data/formats/npy.h"

#include <fmt/ranges.h>

#include <charconv>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

// The three entries of the header.
struct Header {
  std::string descr;
  bool fortran = false, has_descr = false, has_fortran = false, has_shape = false;
  std::vector<std::uint64_t> shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), } : no more of Python than that.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::uint64_t offset, const Source& source)
      : text_(text), offset_(offset), source_(source) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !header_.has_descr) {
        if (peek() != '\'' && peek() != '"') wrong("a simple type (records are not supported)");
        header_.descr = quoted(), header_.has_descr = true;
      } else if (key == "fortran_order" && !header_.has_fortran) {
        header_.fortran = boolean(), header_.has_fortran = true;
      } else if (key == "shape" && !header_.has_shape) {
        header_.shape = tuple(), header_.has_shape = true;
      } else {
        wrong("'descr', 'fortran_order' and 'shape', once each");
      }
      if (!accept(',') && peek() != '}') wrong("',' or '}'");
    }
    if (!header_.has_descr || !header_.has_fortran || !header_.has_shape)
      wrong("'descr', 'fortran_order' and 'shape', once each");
    skip_space();
    if (at_ != text_.size()) wrong("the end of the header");
    return header_;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(fmt::format("'{}'", c));
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong("a quoted word");
    const std::size_t begin = ++at_, end = text_.find(quote, begin);
    if (end == std::string_view::npos) wrong("the end of a quoted word");
    at_ = end + 1;
    return std::string(text_.substr(begin, end - begin));
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) return at_ += word.size(), value;
    wrong("True or False");
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc{}) wrong("an extent");
      at_ = static_cast<std::size_t>(end - text_.data());
      values.push_back(value);
      if (!accept(',') && peek() != ')') wrong("',' or ')'");
    }
    return values;
  }
  [[noreturn]] void wrong(std::string_view expected) {
    corrupt(source_, offset_ + at_, fmt::format("{} in the header", expected),
            at_ < text_.size() ? fmt::format("'{:.20}'", text_.substr(at_)) : "the end of it");
  }

  std::string_view text_;
  std::uint64_t offset_;
  const Source& source_;
  std::size_t at_ = 0;
  Header header_;
};

Element element_of_descr(std::string_view descr, const Source& source, std::uint64_t offset) {
  const std::string_view kind = descr.substr(std::min<std::size_t>(1, descr.size()));
  if (kind == "u1") return Element::u8;
  if (kind == "i1" || kind == "b1") return Element::i8;
  if (kind == "u2") return Element::u16;
  if (kind == "i2") return Element::i16;
  if (kind == "u4") return Element::u32;
  if (kind == "i4") return Element::i32;
  if (kind == "u8") return Element::u64;
  if (kind == "i8") return Element::i64;
  if (kind == "f4") return Element::f32;
  if (kind == "f8") return Element::f64;
  corrupt(source, offset, "whole numbers, float32, float64 or booleans (convert with .astype('float32'))",
          fmt::format("type '{:.20}'", descr));
}

struct NpyLayout {
  Element element;
  bool big_endian;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset;  // of the numbers
};

NpyLayout read_layout(const Source& source) {
  Reader reader(source);
  if (const auto found = reader.text(magic.size(), "the magic that begins an NPY file"); found != magic)
    corrupt(source, 0, "the magic \\x93NUMPY that begins an NPY file", "something else");
  const std::uint64_t major = reader.big(1, "a version");
  reader.big(1, "a version");
  if (major < 1 || major > 3) corrupt(source, 6, "version 1, 2 or 3", fmt::format("{}", major));
  const std::uint64_t length = reader.little(major == 1 ? 2 : 4, "the length of the header");
  if (length > 64 << 10) corrupt(source, 8, "a header of at most 64 KiB", fmt::format("{} bytes", length));
  const std::uint64_t start = reader.offset();
  const std::string text = reader.text(length, "the header");
  Header header = HeaderParser(text, start, source).parse();
  const Element element = element_of_descr(header.descr, source, start);
  const char order = header.descr.front();
  if (order != '<' && order != '>' && order != '|' && order != '=')
    corrupt(source, start, "a byte order ('<', '>' or '|')", fmt::format("'{}'", order));
  if (header.fortran && header.shape.size() > 1)
    corrupt(source, start, "row-major order (save numpy.ascontiguousarray(a))", "Fortran's order");
  return {element, order == '>', std::move(header.shape), reader.offset()};
}

}  // namespace

Array read_npy(SourcePtr source) {
  const NpyLayout layout = read_layout(*source);
  return dense_array(std::move(source), layout.element, layout.big_endian, layout.shape, layout.offset);
}

std::uint64_t declared_npy_bytes(const Source& beginning) {
  const NpyLayout layout = read_layout(beginning);
  return declared_bytes(beginning, layout.element, layout.shape, layout.offset);
}

Array open_npy(Disk& disk, const std::string& path) {
  return read_npy(open_source(disk, path, default_memory_limit, declared_npy_bytes));
}

std::string npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t used = magic.size() + 4 + text.size() + 1;
  text.append((64 - used % 64) % 64, ' ').push_back('\n');  // numbers begin on a multiple of 64
  return fmt::format("{}{}{}{}{}{}", magic, '\x01', '\0', static_cast<char>(text.size() & 255),
                     static_cast<char>(text.size() >> 8), text);
}

}  // namespace echelon::data
