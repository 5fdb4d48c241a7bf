// Any [model] table is either refused with BadInput or with problems, or is a network whose training step has a size:
// nothing that is computed from its numbers wraps around, and nothing is allocated by them.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "models/memory.h"
#include "models/zoo.h"
#include "recipe/toml.h"

int fuzz_network(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const Options options =
        parse_toml({reinterpret_cast<const char*>(data), size}, "input", {.bytes = 1 << 14, .depth = 8, .values = 500});
    Problems problems;
    OptionReader table(options, problems);
    const std::string name = table.text("name", "layers");
    for (const bool text : {false, true}) {
      models::InputSpec inputs{.inputs = {{"image", f32({3, 16, 16})}}, .target = {"label", i32({})}, .classes = 10};
      if (text) inputs = {.inputs = {{"tokens", i32({16})}}, .target = {"targets", i32({16})}, .classes = 64};
      try {
        const auto model = models::make_model(name, table, inputs);
        if (!model || !problems.empty()) continue;
        constexpr std::size_t available = 1 << 30;
        const models::StepMemory memory = models::step_memory(*model, 4, available);
        invariant(memory.parameters % 64 == 0 && memory.least() >= memory.arena, "memory is counted");
      } catch (const BadInput&) {
      }
    }
  } catch (const BadInput&) {
  }
  return 0;
}
