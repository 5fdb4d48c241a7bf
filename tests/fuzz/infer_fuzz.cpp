// Requests of the Open Inference Protocol: the first byte says where the JSON ends.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "serve/protocol.h"

int fuzz_infer(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size == 0) return 0;
  const std::vector<serve::Field> inputs = {{"x", f32({2})},
                                            {"ids", i32({1})},
                                            {"c", f32({}), serve::Field::Cells::words}},
                                  outputs = {{"y", f32({1})}};
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const auto request = serve::read_infer(body, data[0] == 255 ? std::nullopt : std::optional<std::size_t>(data[0]),
                                           inputs, outputs, 8);
    const serve::Rows rows(static_cast<std::size_t>(request.samples) * sizeof(float));
    serve::write_answer("m", "1", request, outputs, {rows});
  } catch (const BadInput&) {
  }
  return 0;
}
