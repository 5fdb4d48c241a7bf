#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/table/encoder.h"
#include "recipe/init_choice.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

constexpr const char* table_optim =
    R"(name = "adamw"          # sgd, momentum, nesterov, adam, adamw, rmsprop, lamb, ...
lr = 3e-3
weight_decay = 0.01     # never on biases and normalisation
# clip_norm = 1.0       # limit the norm of the whole gradient
)";

constexpr std::size_t columns_in_a_comment = 40;

std::string column_text(const data::TableEncoder::Feature& f) {
  if (f.type != data::ColumnType::category) return std::string(name_of(f.type));
  return fmt::format("category, {} values{}", f.categories.size(), f.embedded ? ", embedded" : "");
}

}  // namespace

InitChoice choice_for_table(const data::DatasetInfo& info) {
  InitChoice c;
  const bool embeds = info.table->embedded_columns() > 0;
  c.name = embeds ? "tabular" : "mlp";
  c.others = embeds ? "" : "tabular";
  const auto rows = static_cast<double>(info.size);
  const bool small = rows < 1000;
  c.model = fmt::format("hidden = {}      # units of each hidden layer\n{}", small ? "[64, 32] " : "[128, 64]",
                        small ? "dropout = 0.1\n" : "");
  c.optim = table_optim;
  c.batch = rows < 4000 ? 32 : rows < 50000 ? 64 : 256;
  constexpr double steps = 1500;
  c.epochs = static_cast<std::int64_t>(std::clamp(std::ceil(steps * static_cast<double>(c.batch) / rows), 10.0, 200.0));
  return c;
}

std::string comments_on_table(const data::DatasetInfo& info) {
  std::string out;
  for (const std::string& note : info.notes) out += toml_comment(note);
  const auto& features = info.table->features();
  int width = 0;
  for (const auto& f : features) width = std::clamp(display_width(f.name), width, 32);
  for (std::size_t i = 0; i < std::min(features.size(), columns_in_a_comment); ++i)
    out += toml_comment(fmt::format("  {}  {}", fit(features[i].name, width), column_text(features[i])));
  if (features.size() > columns_in_a_comment)
    out += fmt::format("#   and {} more columns\n", features.size() - columns_in_a_comment);
  return out;
}

}  // namespace echelon
