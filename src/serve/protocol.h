#pragma once
// Requests and answers of the Open Inference Protocol, version 2 (what KServe and Triton speak): JSON, and the binary
// tensor extension, in which the tensors' bytes follow the JSON. Reading trusts nothing: sizes are checked against the
// model's shapes before anything is allocated, and what does not fit is a BadInput for the answer 400. Pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/batcher.h"

namespace echelon::serve {

struct InferRequest {
  std::string id;
  std::int64_t samples = 0;
  std::vector<Rows> rows;  // by the model's inputs
  struct Wanted {
    std::size_t output = 0;  // of the model's
    bool binary = false;
  };
  std::vector<Wanted> wanted;  // all, if the request named none
};

// `json_bytes`: how many bytes of the body are JSON (Inference-Header-Content-Length); none: all of it.
InferRequest read_infer(std::string_view body, std::optional<std::size_t> json_bytes, std::span<const Field> inputs,
                        std::span<const Field> outputs, std::int64_t most_samples);

struct InferAnswer {
  std::string body;
  std::optional<std::size_t> json_bytes;  // with binary tensors: where they begin
};
InferAnswer write_answer(const std::string& model, const std::string& version, const InferRequest& request,
                         std::span<const Field> outputs, const std::vector<Rows>& answers);

// GET v2/models/NAME
std::string metadata(const std::string& model, const std::vector<std::string>& versions, std::span<const Field> inputs,
                     std::span<const Field> outputs);
std::string error_text(const std::string& what);  // {"error": "..."}

}  // namespace echelon::serve
