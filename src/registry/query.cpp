#include "registry/query.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/error.h"

namespace echelon {

namespace {

struct Token {
  enum class Kind { name, number, text, sign, end } kind = Kind::end;
  std::string text;
  double number = 0;
  std::size_t at = 0;
};

[[noreturn]] void wrong(std::string_view text, std::size_t at, const std::string& what) {
  bad_input("the question is not understood at '{}' (character {}): {}\n  for example: {}",
            at < text.size() ? text.substr(at, 24) : "its end", at + 1, what,
            "test_accuracy > 0.98 and optim.lr < 0.1 order by seconds");
}

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '[' || c == ']';
}

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) { advance(); }

  const Token& now() const { return now_; }
  Token take() {
    Token taken = now_;
    advance();
    return taken;
  }
  bool is_word(std::string_view word) const {
    return now_.kind == Token::Kind::name && std::ranges::equal(now_.text, word, [](char a, char b) {
             return std::tolower(static_cast<unsigned char>(a)) == b;
           });
  }
  bool take_word(std::string_view word) {
    if (!is_word(word)) return false;
    advance();
    return true;
  }
  bool take_sign(std::string_view sign) {
    if (now_.kind != Token::Kind::sign || now_.text != sign) return false;
    advance();
    return true;
  }
  [[noreturn]] void refuse(const std::string& what) const { wrong(text_, now_.at, what); }

 private:
  void advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    now_ = {.kind = Token::Kind::end, .text = "", .at = at_};
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return take_text(c);
    if (starts_name(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
      now_.kind = Token::Kind::name, now_.text = text_.substr(begin, at_ - begin);
      return;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.') return take_number();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "=", "<", ">", "~", "(", ")"})
      if (text_.substr(at_).starts_with(sign)) {
        now_.kind = Token::Kind::sign, now_.text = sign == "==" ? "=" : sign;
        at_ += sign.size();
        return;
      }
    wrong(text_, at_, "expected a name, a number, a text in quotes, or one of = != < <= > >= ~ ( )");
  }
  void take_text(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) wrong(text_, at_, "this quote has no end");
    now_.kind = Token::Kind::text, now_.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
  }
  void take_number() {
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), now_.number);
    if (error != std::errc() || !std::isfinite(now_.number)) wrong(text_, at_, "this is no number");
    now_.kind = Token::Kind::number, now_.text = std::string(begin, end);
    at_ += static_cast<std::size_t>(end - begin);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token now_;
};

class Compiler {
 public:
  explicit Compiler(std::string_view text) : words_(text) {}

  CompiledQuery compile() {
    if (words_.now().kind != Token::Kind::end && !words_.is_word("order") && !words_.is_word("limit"))
      query_.where = either(0);
    if (words_.take_word("order")) {
      if (!words_.take_word("by")) words_.refuse("'order' is followed by 'by' and a name");
      const std::string name = name_here("a name to order by");
      query_.names.push_back(name);
      const char* direction = words_.take_word("desc") ? "DESC" : (words_.take_word("asc"), "ASC");
      // Runs that do not have it come last.
      query_.order = fmt::format("ORDER BY {0} IS NULL, {0} {1}",
                                 "COALESCE(" + value_of("num") + ", " + value_of("txt") + ")", direction);
      for (int i = 0; i < 4; ++i) query_.values.emplace_back(name);
    }
    if (words_.take_word("limit")) {
      const Token n = words_.now();
      if (n.kind != Token::Kind::number || n.number < 1 || n.number > 1e6 || n.number != std::floor(n.number))
        words_.refuse("'limit' is followed by a whole number from 1 on");
      query_.limit = static_cast<std::int64_t>(n.number);
      words_.take();
    }
    if (words_.now().kind != Token::Kind::end) words_.refuse("expected 'and', 'or', 'order by', 'limit' or the end");
    return std::move(query_);
  }

 private:
  static constexpr int deepest = 10;  // SQLite's parser has a stack of 100, of which a level takes up to 8

  // Long lists stay flat: the parser's stack grows with parentheses alone.
  std::string either(int depth) {
    if (depth > deepest) words_.refuse("too many parentheses inside each other");
    std::string sql = both(depth);
    bool several = false;
    for (; words_.take_word("or"); several = true) sql += " OR " + both(depth);
    return several ? "(" + sql + ")" : sql;
  }
  std::string both(int depth) {
    std::string sql = one(depth);
    bool several = false;
    for (; words_.take_word("and"); several = true) sql += " AND " + one(depth);
    return several ? "(" + sql + ")" : sql;
  }
  std::string one(int depth) {
    bool negated = false;
    while (words_.take_word("not")) negated = !negated;
    const std::string sql = affirmed(depth);
    return negated ? "(NOT " + sql + ")" : sql;
  }
  std::string affirmed(int depth) {
    if (words_.take_sign("(")) {
      std::string sql = either(depth + 1);
      if (!words_.take_sign(")")) words_.refuse("expected ')'");
      return sql;
    }
    return comparison();
  }
  std::string name_here(const char* what) {
    if (words_.now().kind != Token::Kind::name) words_.refuse(fmt::format("expected {}", what));
    return words_.take().text;
  }
  // A run may have several values of one name (tags): one that fits is enough. Nothing to compare with is not unequal.
  std::string comparison() {
    const std::string name = name_here("the name of a setting or of a result");
    query_.names.push_back(name);
    query_.values.emplace_back(name);
    const std::string has = "EXISTS (SELECT 1 FROM vals v WHERE v.run = runs.id AND v.key = ?";
    // A name alone: the run has it, and it is neither 0 nor false.
    if (words_.now().kind != Token::Kind::sign || words_.now().text == ")")
      return has + " AND COALESCE(v.num, 1) <> 0)";
    const std::string sign = words_.take().text;
    if (sign == "(") words_.refuse("a name is followed by one of = != < <= > >= ~");
    const Token value = words_.now();
    const bool has_value =
        value.kind == Token::Kind::number || value.kind == Token::Kind::text || value.kind == Token::Kind::name;
    if (!has_value) words_.refuse(fmt::format("'{} {}' is followed by a number or a text", name, sign));
    words_.take();
    if (value.kind == Token::Kind::number && sign != "~") {
      query_.values.emplace_back(value.number);
      return fmt::format("{} AND v.num {} ?)", has, sign);
    }
    query_.values.emplace_back(value.text);
    if (sign == "~") return has + " AND instr(lower(v.txt), lower(?)) > 0)";
    if (value.kind != Token::Kind::number && (value.text == "true" || value.text == "false") && sign == "=") {
      query_.values.back() = value.text == "true" ? 1.0 : 0.0;
      return has + " AND v.num = ?)";
    }
    return fmt::format("{} AND v.txt {} ?)", has, sign);
  }
  static std::string value_of(const char* column) {
    return fmt::format("(SELECT v.{} FROM vals v WHERE v.run = runs.id AND v.key = ?)", column);
  }

  Words words_;
  CompiledQuery query_;
};

}  // namespace

CompiledQuery compile_query(std::string_view text) {
  if (text.size() > longest_query)
    bad_input("the question has {} characters; {} are the most", text.size(), longest_query);
  return Compiler(text).compile();
}

}  // namespace echelon
