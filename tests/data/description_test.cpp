#include "data/description.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace echelon::data {
namespace {

DatasetInfo example_info() {
  DatasetInfo info;
  info.size = 120;
  info.fields = {{"features", DType::f32, {7}}, {"categories", DType::i32, {2}, {5, 31}}, {"target", DType::f32, {2}}};
  info.inputs = 2;
  info.targets = {{"price", 512.25, 17.5, false}, {"sold", 0, 1, true}};
  info.streams = 0;
  info.fingerprint = "abc";
  return info;
}

TEST(Description, SaysAllThatAModelAndItsAnswersDependOn) {
  const DatasetInfo info = example_info();
  const DatasetInfo back = read_description(parse_json(describe(info).dump(), "text"), "samples.json");
  EXPECT_EQ(back.size, info.size);
  EXPECT_EQ(back.fields, info.fields);
  EXPECT_EQ(back.inputs, info.inputs);
  EXPECT_EQ(back.fingerprint, info.fingerprint);
  ASSERT_EQ(back.targets.size(), 2u);
  EXPECT_EQ(back.targets[0].name, "price");
  EXPECT_EQ(back.targets[0].mean, 512.25);
  EXPECT_EQ(back.targets[0].deviation, 17.5);
  EXPECT_TRUE(back.targets[1].binary);

  DatasetInfo pictures;
  pictures.size = 3;
  pictures.fields = {{"image", DType::f32, {3, 8, 9}}, {"label", DType::i32, {}}};
  pictures.classes = 2;
  pictures.class_names = {"cat", "dog"};
  const DatasetInfo again = read_description(describe(pictures), "samples.json");
  EXPECT_EQ(again.fields, pictures.fields);
  EXPECT_EQ(again.class_names, pictures.class_names);
  EXPECT_EQ(again.classes, 2);
}

TEST(Description, OfDamagedFilesIsRefusedWithTheirName) {
  const Json good = describe(example_info());
  const auto expect_refused = [](const Json& json) {
    try {
      read_description(json, "samples.json");
      ADD_FAILURE() << json.dump();
    } catch (const BadInput& problem) {
      EXPECT_NE(std::string(problem.what()).find("samples.json"), std::string::npos) << problem.what();
    }
  };
  for (const char* key : {"version", "size", "fields", "inputs", "classes", "class_names", "targets", "fingerprint"}) {
    Json json = good;
    json.erase(key);
    expect_refused(json);
  }
  for (const auto& [key, value] : {std::pair<const char*, Json>("version", 99),
                                   {"size", 0},
                                   {"inputs", 9},
                                   {"classes", -1},
                                   {"class_names", {"a"}},
                                   {"streams", -2},
                                   {"fields", Json::array()}}) {
    Json json = good;
    json[key] = value;
    expect_refused(json);
  }
  Json json = good;
  json["fields"][0]["shape"] = {1 << 30, 1 << 30};
  expect_refused(json);
  json = good;
  json["targets"][0]["deviation"] = 0;
  expect_refused(json);
  expect_refused(Json::array());
}

TEST(Description, HasNoSamples) {
  const DatasetPtr samples = described_samples(example_info());
  EXPECT_EQ(samples->size(), 120u);
  Sample sample(samples->fields());
  EXPECT_THROW(samples->get(0, {}, sample.ref()), BadInput);
}

}  // namespace
}  // namespace echelon::data
