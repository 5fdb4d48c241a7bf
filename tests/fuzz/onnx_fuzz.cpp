// ONNX files: read, imported, and written again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "onnx/import.h"

int fuzz_onnx(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const onnx::Model file = onnx::read(std::as_bytes(std::span(data, size)));
    const std::string again = onnx::write(file);
    onnx::read(std::as_bytes(std::span(again)));
    onnx::import_model(file);
  } catch (const BadInput&) {
  }
  return 0;
}
