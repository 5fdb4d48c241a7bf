#pragma once
// A SQLite database as a C++ object: statements with bound values, transactions, errors as exceptions. The file is in
// WAL mode, so that any number of processes read while one writes; a writer waits for another for up to ten seconds.
//
// Failure, naming the file and SQLite's reason, for everything that goes wrong. One thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace echelon {

// The file is no database, or a broken one.
class DamagedDatabase : public BadInput {
  using BadInput::BadInput;
};

class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement, sqlite3* database, const std::string& path)
      : statement_(statement, finalize), database_(database), path_(&path) {}

  // Values for the question marks, from 1 on.
  Statement& bind(int at, double value);
  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::string_view value);
  Statement& bind_null(int at);

  bool step();  // true: there is a row
  void run();   // to its end; then it can be bound and run again

  std::int64_t integer(int column) const;
  std::optional<double> number(int column) const;  // nothing for NULL
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  static void finalize(sqlite3_stmt* statement);
  void check(int code) const;
  std::unique_ptr<sqlite3_stmt, void (*)(sqlite3_stmt*)> statement_;
  sqlite3* database_;
  const std::string* path_;
};

class Database {
 public:
  explicit Database(std::string path);  // made if it is absent

  Statement prepare(std::string_view sql);
  void execute(const char* sql);                        // several statements without values
  void in_transaction(const std::function<void()>& f);  // all of it or, if `f` throws, nothing
  const std::string& path() const { return path_; }

 private:
  static void close(sqlite3* database);
  const std::string path_;
  std::unique_ptr<sqlite3, void (*)(sqlite3*)> database_;
};

}  // namespace echelon
