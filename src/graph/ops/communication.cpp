#include "graph/ops/communication.h"

#include <fmt/format.h>

#include "graph/communicator.h"

namespace echelon::ops {

namespace {

class Send : public Op {
 public:
  explicit Send(int message) : message_(message) {}
  std::string_view name() const override { return "send"; }
  std::string detail() const override { return fmt::format("message {}", message_); }
  std::vector<Type> infer(std::span<const Type>) const override { return {}; }
  Kernel compile(const Operands& o) const override {
    const std::span<const std::byte> bytes(o.in[0].data, o.in[0].type.bytes());
    return [bytes, message = message_](const StepContext& step) { step.communicator->send(message, step, bytes); };
  }

 private:
  int message_;
};

class Receive : public Op {
 public:
  Receive(const Type& type, int message) : type_(type), message_(message) {}
  std::string_view name() const override { return "receive"; }
  std::string detail() const override { return fmt::format("message {}", message_); }
  std::vector<Type> infer(std::span<const Type>) const override { return {type_}; }
  Kernel compile(const Operands& o) const override {
    const std::span<std::byte> into(o.out[0].data, o.out[0].type.bytes());
    return [into, message = message_](const StepContext& step) { step.communicator->receive(message, step, into); };
  }

 private:
  Type type_;
  int message_;
};

}  // namespace

void send(Graph& g, Value x, int message) { g.add(std::make_shared<Send>(message), {x}); }

Value receive(Graph& g, const Type& type, int message) {
  return g.add_one(std::make_shared<Receive>(type, message), {});
}

}  // namespace echelon::ops
