#include "recipe/init.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "data/files/catalog.h"
#include "data/table/encoder.h"
#include "recipe/init_choice.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

constexpr const char* momentum = R"(name = "momentum"       # sgd, momentum, nesterov, adam, adamw, rmsprop, lamb, ...
lr = 0.05
momentum = 0.9
weight_decay = 5e-4     # never on biases and normalisation
# clip_norm = 1.0       # limit the norm of the whole gradient
)";
constexpr const char* table_keys = R"(# types = { code = "category" }   # or number, boolean, date, text
# missing_numbers = "median"      # or mean; fitted on the training part, as all that is fitted
# one_hot = 16          # columns with more categories are embedded (model tabular)
)";
constexpr const char* adam = R"(name = "adamw"          # sgd, momentum, nesterov, adam, adamw, rmsprop, lamb, ...
lr = 1e-3
weight_decay = 0.01     # never on biases and normalisation
# clip_norm = 1.0       # limit the norm of the whole gradient
)";

InitChoice for_image(const data::DatasetInfo& info) {
  const Shape& image = info.fields[0].shape;
  const std::int64_t side = std::min(image[1], image[2]);
  InitChoice c;
  c.optim = momentum;
  if (info.fields.size() < 2)
    c = {"hidden = [512, 128, 32]\nnoise = 0.3\n", "autoencoder", "gan", adam};
  else if (info.classes == 0)
    c = {"hidden = [512, 256]\n", "mlp", "", adam};
  else if (side < 64 && image[0] == 1)
    c.name = "lenet5", c.others = "mlp, resnet20, densenet40, lstm",
    c.transforms = {R"({ kind = "shift", most = 2 },)"};
  else if (side < 64)
    c.name = "resnet20", c.others = "vgg11, resnet18, densenet40, mlp", c.batch = 128,
    c.transforms = {R"({ kind = "crop", pad = 4 },)", R"({ kind = "flip" },)"};
  else
    c.name = "resnet18", c.others = "alexnet, googlenet, densenet121", c.batch = 32,
    c.transforms = {R"({ kind = "flip" },)"};
  return c;
}

std::int64_t fitting_batch(std::int64_t batch, std::uint64_t samples) {
  while (batch > 8 && static_cast<std::uint64_t>(batch) * 8 > samples) batch /= 2;
  return std::min(batch, static_cast<std::int64_t>(samples));
}

// A network needs some hundred steps before it recognises anything, so few pictures are looked at more often.
std::int64_t epochs_of_few(std::int64_t epochs, std::int64_t batch, std::uint64_t samples) {
  constexpr std::int64_t steps = 600, most = 60;
  const auto wanted = steps * fitting_batch(batch, samples) / static_cast<std::int64_t>(samples);
  return std::clamp(wanted, epochs, std::max(epochs, most));
}

InitChoice choose(const data::DatasetInfo& info) {
  if (info.table) return choice_for_table(info);
  const data::Field& input = info.fields[0];
  const bool tokens = input.dtype == DType::i32, paired = info.fields.size() > 1;
  if (!tokens && input.shape.rank() == 3) {
    InitChoice c = for_image(info);
    c.epochs = epochs_of_few(c.epochs, c.batch, info.size);
    return c;
  }
  if (!tokens) {
    const std::string model = "hidden = [128, 64]      # units of each hidden layer\nbatch_norm = true\n";
    return {model, "mlp", "", adam, 20};
  }
  if (paired && info.fields[1].shape == input.shape)
    return {"layers = 4\nheads = 4\nwidth = 128\n", "gpt", "", adam, 2, 16};
  return {"hidden = 128\nvocabulary = 256        # tokens are below this\n", "lstm", "gru", adam};
}

// What the pixels are normalised with, as found in the data; empty if that makes no sense.
std::string normalise(const data::Dataset& dataset) {
  std::vector<std::string> means, deviations;
  for (const data::ChannelSummary& channel : data::summarise(dataset, 2000).channels) {
    if (!(channel.deviation > 1e-6)) return "";
    means.push_back(fmt::format("{:.4g}", channel.mean));
    deviations.push_back(fmt::format("{:.4g}", channel.deviation));
  }
  if (means.empty()) return "";
  return fmt::format("{{ kind = \"normalise\", mean = [{}], std = [{}] }},", fmt::join(means, ", "),
                     fmt::join(deviations, ", "));
}

// Where some class has far fewer samples than another: what is then measured, and how to make up for it. Of tables and
// of folders of pictures, whose classes are known without reading the samples.
std::string on_rare_classes(const data::Dataset& train) {
  const data::DatasetInfo& info = train.info();
  if (!data::has_labels(info) || info.classes < 2 || (!info.table && !info.files)) return "";
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(info.classes));
  for (std::uint64_t i = 0; i < train.size(); ++i) ++counts[static_cast<std::size_t>(train.label(i))];
  const auto [least, most] = std::ranges::minmax(counts);
  constexpr std::uint64_t far = 3;
  if (most < far * least) return "";
  return fmt::format(
      "\n[loss]\n# class_weights = \"balanced\"   # the rarest class has {} samples, the most frequent {}\n"
      "\n[metrics]\nreport = [\"accuracy\", \"f1\", \"auc\"]   # accuracy alone says little of a rare class\n",
      least, most);
}

// Where there is a date: how to test on the latest rows.
std::string hint_at_time(const data::TableEncoder& table) {
  const auto date = std::ranges::find(table.features(), data::ColumnType::date, &data::TableEncoder::Feature::type);
  if (date == table.features().end()) return "";
  return fmt::format("# time = {}   # cut by time: the latest rows test, those before them validate\n",
                     toml_quoted(date->name));
}

std::string describe(const data::DatasetInfo& train, std::uint64_t validation, std::uint64_t test) {
  std::string out = fmt::format("# {} samples to train with,{} {} to test with:", train.size,
                                validation > 0 ? fmt::format(" {} to validate,", validation) : "", test);
  for (std::size_t i = 0; i < train.inputs; ++i)
    out += fmt::format("{} {}", i == 0 ? "" : ",", to_string(train.fields[i]));
  if (train.classes > 0) out += fmt::format("; {} classes", train.classes);
  return out + "\n";
}

Option::List list_of(const std::vector<std::string>& words) {
  Option::List list;
  for (const std::string& word : words) list.push_back({word, {}});
  return list;
}

// What a table's recipe says although it could be found again: a column more in the file must not change the task.
void say_what_was_found(Options& data, const data::DatasetInfo& info) {
  std::vector<std::string> targets;
  for (const auto& t : info.table->targets()) targets.push_back(t.name);
  if (targets.size() == 1)
    data.items["label"].value = targets[0];
  else if (targets.size() > 1)
    data.items["label"].value = list_of(targets);
  data.items["task"].value = std::string(name_of(info.table->task()));
}

}  // namespace

std::string initial_recipe(Disk& disk, Options table, const data::DataPlaces& places) {
  const auto open = [&](const std::string& split) { return data::open_dataset(disk, table, split, places); };
  const bool text = std::get<std::string>(table.items.at("kind").value) == "text";
  say_size(disk, table, *open("train"));
  const data::DatasetPtr train = open("train");
  data::DatasetPtr test;
  std::uint64_t validation = 0;
  bool kept_back = false;
  const auto keep_back = [&] {
    kept_back = true;
    table.items["validation"].value = table.items["test"].value = 0.1;
    test = open("test");
    validation = open("validation")->size();
  };
  if (text)
    keep_back();
  else
    try {
      test = open("test");
    } catch (const BadInput&) {
      keep_back();
    }
  const data::DatasetInfo info = open("train")->info();
  if (info.classes == 1 && data::has_labels(info))
    bad_input("{}: all samples are of one class{}: there is nothing to tell apart; add samples of another",
              table.items.contains("path") ? std::get<std::string>(table.items.at("path").value) : "the data",
              info.class_names.empty() ? "" : fmt::format(" ('{}')", info.class_names[0]));
  if (info.table) say_what_was_found(table, info);
  if (kept_back) table.items.erase("validation"), table.items.erase("test");  // written below, with a comment
  InitChoice choice = choose(info);
  if (info.classes > 0 && info.fields[0].dtype == DType::f32 && info.fields[0].shape.rank() == 3)
    if (const std::string line = normalise(*train); !line.empty()) choice.transforms.push_back(line);

  std::string out =
      "# A recipe: one file is one run.\n#\n#   echelon check FILE    finds mistakes, all at once, without "
      "training\n#   echelon train FILE    trains; --set optim.lr=0.01 changes a key for one run\n\n[model]\n";
  out += fmt::format("name = {:<17}{}{}\n{}\n[data]\n", toml_quoted(choice.name), choice.others.empty() ? "" : "# or ",
                     choice.others, choice.model);
  out += describe(info, validation, test->size());
  if (info.table) out += comments_on_table(info);
  out += write_toml(table);
  if (kept_back)
    out +=
        "validation = 0.1        # this part decides which step is the best\n"
        "test = 0.1              # and this one is looked at once, at the end\n";
  else if (info.table)
    out += "# validation = 0.1      # a part that decides which step is the best, instead of the test part\n";
  if (info.table && !table.items.contains("ignore")) out += "# ignore = [\"column\"]   # columns to leave out\n";
  if (info.table) out += hint_at_time(*info.table);
  if (info.table) out += table_keys;
  out += "# limit = 1000          # train on the first so many samples only\n";
  if (!choice.transforms.empty()) {
    out += "transform = [           # in this order; what is random is done in training only\n";
    for (const std::string& line : choice.transforms) out += "  " + line + "\n";
    out += "]\n";
  }
  const std::string rare = on_rare_classes(*train);
  out += rare;
  out += fmt::format("\n[optim]\n{}", choice.optim);
  out += R"(
[schedule]
name = "cosine"         # constant, step, cosine, polynomial, one_cycle, plateau
warmup_epochs = 0.5     # the rate rises in a straight line first
final = 0.0             # the last rate, as a share of optim.lr

[train]
)";
  out += fmt::format("epochs = {:<15}# or steps\n", choice.epochs);
  const std::int64_t batch = fitting_batch(choice.batch, info.size);
  out += fmt::format("batch = {:<16}# samples in a step, on all cores together\n", batch);
  out += R"(seed = 1                # the same seed gives the same weights, on any number of cores
# shards = 8            # parts of a batch that cores share; derived from the batch
)";
  if (!rare.empty())
    out += fmt::format("monitor = {:<14}# decides which step is the best\n", kept_back ? "\"val_f1\"" : "\"test_f1\"");
  if (info.classes > 0)
    out += "# target_accuracy = 0.99  # stop as soon as an evaluation is so good\n";
  else
    out += "# target_loss = 0.01    # stop as soon as an evaluation has a loss this low\n";
  out += "# patience = 3          # or after so many evaluations without a better one\n";
  if (const std::int64_t often = choice.epochs / 20; often > 1)
    out += fmt::format("eval_every_epochs = {0}\ncheckpoint_every_epochs = {0}\n", often);
  else
    out += "# eval_every_epochs = 1\n# checkpoint_every_epochs = 1\n";
  out += "# keep = 3              # checkpoints, besides the best\n";
  return out;
}

}  // namespace echelon
