#include "registry/database.h"

#include <sqlite3.h>

#include "base/error.h"

namespace echelon {

namespace {
constexpr int wait_for_writers_ms = 10'000;

[[noreturn]] void database_failure(sqlite3* database, const std::string& path) {
  const int code = database ? sqlite3_errcode(database) & 0xff : SQLITE_NOMEM;
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    throw DamagedDatabase(fmt::format("{}: damaged ({}). `echelon runs index` makes it again from the runs' folders",
                                      path, sqlite3_errmsg(database)));
  fail("{}: {}", path, database ? sqlite3_errmsg(database) : "out of memory");
}
}  // namespace

void Statement::finalize(sqlite3_stmt* statement) { sqlite3_finalize(statement); }

void Statement::check(int code) const {
  if (code != SQLITE_OK) database_failure(database_, *path_);
}

Statement& Statement::bind(int at, double value) {
  check(sqlite3_bind_double(statement_.get(), at, value));
  return *this;
}

Statement& Statement::bind(int at, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), at, value));
  return *this;
}

Statement& Statement::bind(int at, std::string_view value) {
  check(sqlite3_bind_text(statement_.get(), at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind_null(int at) {
  check(sqlite3_bind_null(statement_.get(), at));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_failure(database_, *path_);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
  check(sqlite3_reset(statement_.get()));
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::optional<double> Statement::number(int column) const {
  if (is_null(column)) return std::nullopt;
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))) : "";
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

void Database::close(sqlite3* database) { sqlite3_close_v2(database); }

Database::Database(std::string path) : path_(std::move(path)), database_(nullptr, close) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) database_failure(opened, path_);
  sqlite3_busy_timeout(opened, wait_for_writers_ms);
  execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;");
}

Statement Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK)
    database_failure(database_.get(), path_);
  return Statement(statement, database_.get(), path_);
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    database_failure(database_.get(), path_);
}

void Database::in_transaction(const std::function<void()>& f) {
  execute("BEGIN IMMEDIATE");
  try {
    f();
    execute("COMMIT");
  } catch (...) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace echelon
