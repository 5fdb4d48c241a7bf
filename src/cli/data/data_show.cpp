// `echelon data show RECIPE --png FILE`: what a recipe's augmentation makes of its pictures.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/data/picture_sheet.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "data/open.h"
#include "recipe/load.h"
#include "recipe/recipe.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

struct ShowDataSettings {
  std::string recipe, png;
  std::vector<std::string> overrides;
  std::int64_t columns = 10, rows = 5;
  bool json = false;
};

// The upper row as an evaluation sees the samples; below, as training sees them in epochs 0, 1, 2, ...
void show_data(const ShowDataSettings& s) {
  const auto disk = make_real_disk();
  Problems problems;
  const Recipe recipe = read_recipe(s.recipe, load_options(*disk, s.recipe, s.overrides, problems), problems);
  OptionReader table(recipe.data, problems);
  const data::DataSpec spec = data::read_data_spec(table);
  problems.throw_if_any(s.recipe);
  const auto plain = spec.open_plain(*disk, "train");
  const auto calm = spec.transformed(plain, false), augmented = spec.transformed(plain, true);
  const Shape& shape = augmented->fields()[0].shape;
  if (augmented->fields()[0].dtype != DType::f32 || shape.rank() != 3 || (shape[0] != 1 && shape[0] != 3))
    bad_input("only pictures with one or three channels can be shown, but a sample of {} is {}", s.recipe,
              data::to_string(augmented->fields()[0]));
  // Spread over all of them: those of a folder of pictures stand class by class.
  const auto shown = [&](std::int64_t column) {
    const auto at = static_cast<std::uint64_t>(column), columns = static_cast<std::uint64_t>(s.columns);
    return plain->size() < columns ? at % plain->size() : at * plain->size() / columns;
  };
  const bool comparable = calm->fields() == augmented->fields();
  std::vector<std::vector<float>> pictures;  // row by row
  data::Sample sample(augmented->fields());
  for (std::int64_t row = comparable ? 0 : 1; row <= s.rows; ++row)
    for (std::int64_t column = 0; column < s.columns; ++column) {
      const std::uint64_t index = shown(column);
      const data::SampleContext context{.seed = recipe.train.seed, .epoch = static_cast<std::uint32_t>(row - 1)};
      if (row == 0)
        calm->get(index, {}, sample.ref());
      else
        augmented->get(index, context, sample.ref());
      const auto pixels = sample.field<float>(0);
      pictures.emplace_back(pixels.begin(), pixels.end());
    }
  float low = pictures[0][0], high = low;
  for (const auto& p : pictures) {
    const auto [least, most] = std::ranges::minmax(p);
    low = std::min(low, least), high = std::max(high, most);
  }
  if (!(high > low)) high = low + 1;
  const auto columns = s.columns, rows = static_cast<std::int64_t>(pictures.size()) / columns;
  Sheet sheet(shape, columns, rows);
  for (std::int64_t i = 0; i < columns * rows; ++i)
    sheet.put(pictures[static_cast<std::size_t>(i)], i % columns, i / columns, low, high);
  write_named_file(*disk, s.png, sheet.png());
  if (s.json)
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{{"recipe", s.recipe}, {"png", s.png}, {"columns", columns}, {"rows", rows}}.dump());
  else
    fmt::print("wrote {}: {} samples {}in {} epochs of training\n", s.png, columns,
               comparable ? "as an evaluation sees them, and below " : "", s.rows);
}

}  // namespace

void add_data_show(Verb data) {
  const Verb verb = data.add_subcommand("show", "A picture of what a recipe's augmentation makes of its samples");
  auto s = std::make_shared<ShowDataSettings>();
  verb.add_option("recipe", s->recipe, "A recipe (TOML) that trains on pictures").required();
  verb.add_option("--png", s->png, "The picture to write").required();
  verb.add_option("--set", s->overrides, "Change one setting of the recipe: --set train.seed=2").one_each_time();
  verb.add_option("--samples", s->columns, "How many samples, side by side").show_default().range(1, 100);
  verb.add_option("--epochs", s->rows, "How many epochs, below each other").show_default().range(1, 100);
  verb.add_flag("--json", s->json, "Print JSON");
  verb.footer("Example:\n  echelon data show recipes/models/lenet5-mnist.toml --png augmented.png");
  verb.action([s] { show_data(*s); });
}

}  // namespace echelon::cli
