// Requests and answers of the Open Inference Protocol.
#include "serve/protocol.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/json.h"
#include "serve/cells.h"

namespace echelon::serve {
namespace {

const std::vector<Field> two_inputs = {{"x", f32({2})}, {"ids", i32({1})}}, one_output = {{"logits", f32({3})}};

InferRequest read_text(const std::string& text, std::optional<std::size_t> json = {}) {
  return read_infer(text, json, two_inputs, one_output, 4);
}

std::string refusal(const std::string& text, std::optional<std::size_t> json = {}) {
  try {
    read_text(text, json);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

const std::string plain_request =
    R"({"id":"7","inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4.5]]},
        {"name":"ids","shape":[2,1],"datatype":"INT32","data":[5,6]}]})";

TEST(Protocol, ReadsNumbersInListsAndListsOfLists) {
  const InferRequest r = read_text(plain_request);
  EXPECT_EQ(r.id, "7");
  EXPECT_EQ(r.samples, 2);
  float x[4];
  ASSERT_EQ(r.rows[0].size(), sizeof x);
  std::memcpy(x, r.rows[0].data(), sizeof x);
  EXPECT_EQ(x[3], 4.5f);
  ASSERT_EQ(r.wanted.size(), 1u);
  EXPECT_FALSE(r.wanted[0].binary);
}

TEST(Protocol, ReadsAndWritesTensorsAsBytes) {
  const std::string json =
      R"({"inputs":[{"name":"ids","shape":[1,1],"datatype":"INT32","parameters":{"binary_data_size":4}},)"
      R"({"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],)"
      R"("parameters":{"binary_data_output":true}})";
  std::string body = json + std::string(12, '\0');
  const std::int32_t id = 42;
  std::memcpy(body.data() + json.size(), &id, 4);
  const InferRequest r = read_text(body, json.size());
  EXPECT_EQ(std::memcmp(r.rows[1].data(), &id, 4), 0);
  const float said[] = {0.1f, -2, 3};
  Rows rows(sizeof said);
  std::memcpy(rows.data(), said, sizeof said);
  const InferAnswer a = write_answer("m", "1", r, one_output, {rows});
  ASSERT_TRUE(a.json_bytes);
  EXPECT_EQ(a.body.size(), *a.json_bytes + sizeof said);
  EXPECT_EQ(std::memcmp(a.body.data() + *a.json_bytes, said, sizeof said), 0);
  const Json head = Json::parse(a.body.substr(0, *a.json_bytes));
  EXPECT_EQ(head["outputs"][0]["parameters"]["binary_data_size"], 12);
  EXPECT_EQ(head["outputs"][0]["shape"], (std::vector<int>{1, 3}));
}

TEST(Protocol, WritesNumbersThatComeBackToTheBit) {
  const InferRequest r = read_text(plain_request);
  const float said[] = {0.1f, 1.0f / 3, 1e-30f, -7, 3.4e38f, 0};
  Rows rows(sizeof said);
  std::memcpy(rows.data(), said, sizeof said);
  const Json a = Json::parse(write_answer("m", "2", r, one_output, {rows}).body);
  EXPECT_EQ(a["id"], "7");
  EXPECT_EQ(a["model_version"], "2");
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(a["outputs"][0]["data"][i].get<float>(), said[i]);
}

TEST(Protocol, RefusesWhatDoesNotFitAndSaysWhy) {
  EXPECT_NE(refusal("[1]").find("no JSON object"), std::string::npos);
  EXPECT_NE(refusal("{}").find("inputs"), std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"y"}]})").find("no input 'y'"), std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]})").find("[-1, 2]"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[9,2],"datatype":"FP32","data":[]}]})").find("1 to 4"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2,3]}]})").find("more numbers"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1]}]})").find("1 numbers"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP64","data":[1,2]}]})").find("FP32"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})").find("'ids' is missing"),
      std::string::npos);
  EXPECT_NE(refusal("{}", 99).find("99"), std::string::npos);
  EXPECT_NE(refusal(R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,1e39]}]})").find("not finite"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"inputs":[{"name":"ids","shape":[1,1],"datatype":"INT32","data":[4294967297]}]})").find("32 bits"),
      std::string::npos);
  const std::string json =
      R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}]})";
  EXPECT_NE(refusal(json + std::string("\0\0\xc0\x7f\0\0\0\0", 8), json.size()).find("not finite"), std::string::npos);
}

TEST(Protocol, ReadsCellsOfATable) {
  const std::vector<Field> columns = {{"age", f32({}), Field::Cells::numbers}, {"city", f32({}), Field::Cells::words}};
  const std::string head = R"({"inputs":[{"name":"age","shape":[2],"datatype":)";
  const auto read = [&](const std::string& text, std::optional<std::size_t> json = {}) {
    return read_infer(text, json, columns, one_output, 4);
  };
  const InferRequest r = read(head + R"("FP64","data":[0.1,null]},
      {"name":"city","shape":[2],"datatype":"BYTES","data":["Bern","a,\"b"]}]})");
  EXPECT_EQ(cells_of(r.rows[0]), (std::vector<std::string_view>{"0.1", ""}));
  EXPECT_EQ(cells_of(r.rows[1]), (std::vector<std::string_view>{"Bern", "a,\"b"}));
  const std::string json = head + R"("INT32","parameters":{"binary_data_size":8}},
      {"name":"city","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":9}}]})";
  const InferRequest b = read(json + std::string("\7\0\0\0\xff\xff\xff\xff\1\0\0\0x\0\0\0\0", 17), json.size());
  EXPECT_EQ(cells_of(b.rows[0]), (std::vector<std::string_view>{"7", "-1"}));
  EXPECT_EQ(cells_of(b.rows[1]), (std::vector<std::string_view>{"x", ""}));
  EXPECT_THROW(read(json + std::string("\7\0\0\0\xff\xff\xff\xff\x9\0\0\0x\0\0\0\0", 17), json.size()), BadInput);
  EXPECT_THROW(read(head + R"("FP64","data":[1]},{"name":"city","shape":[2],"datatype":"BYTES","data":["a","b"]}]})"),
               BadInput);
  EXPECT_THROW(
      read(head + R"("FP64","data":[1,{}]},{"name":"city","shape":[2],"datatype":"BYTES","data":["a","b"]}]})"),
      BadInput);
}

}  // namespace
}  // namespace echelon::serve
