#pragma once
// What make_schema does, in two files: which columns are what (schema.cpp), and what is to be learnt of the targets
// (schema_targets.cpp). Used once, by one thread; the profile and the options must outlive it.

#include "data/table/schema.h"

namespace echelon::data {

std::string lower_name(std::string_view name);  // A to Z as a to z

class SchemaMaker {
 public:
  SchemaMaker(const TableProfile& profile, const TableOptions& options) : profile_(profile), options_(options) {}

  TableSchema make();

 private:
  using Role = SchemaColumn::Role;

  // The column that the recipe's `key` names; a problem if there is none.
  std::optional<std::size_t> find(const std::string& name, const char* key);
  void force(std::size_t c, ColumnType type);
  void leave_out(std::size_t c, std::string reason);
  std::string left_out_text() const;
  // Rows are put in the order of a column only if every row has a place in it.
  void check_time();
  // One cell that is larger than all others by so much leaves no difference between the others. Where most are so
  // large, it is only their unit.
  void check_range(std::size_t c);
  void judge_feature(std::size_t c);

  void choose_targets();
  std::optional<std::size_t> usual_target();
  void choose_task(const std::vector<std::size_t>& targets);
  // A target that is no number is a class, unless that makes no sense; then somebody has to say it.
  bool expect_classes(const ColumnProfile& p);
  void check_target(std::size_t c, std::size_t targets);
  void choose_classes(std::size_t c);

  const TableProfile& profile_;
  const TableOptions& options_;
  TableSchema schema_ = {};
  std::vector<std::string> problems_ = {};
  std::vector<std::size_t> forced_ = {};  // columns whose type the recipe says
};

}  // namespace echelon::data
