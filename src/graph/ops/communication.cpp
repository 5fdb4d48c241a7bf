#include "graph/ops/communication.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/communicator.h"

namespace echelon::ops {

namespace {

class Send : public Op {
 public:
  explicit Send(int message) : message_(message) {}
  int message() const { return message_; }
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
  int message() const { return message_; }
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

class StartGather : public Op {
 public:
  StartGather(const Type& type, int parameter) : type_(type), parameter_(parameter) {}
  std::string_view name() const override { return "start_gather"; }
  std::string detail() const override { return fmt::format("parameter {}", parameter_); }
  std::vector<Type> infer(std::span<const Type>) const override { return {type_}; }
  Kernel compile(const Operands& o) const override {
    const std::span<std::byte> into(o.out[0].data, o.out[0].type.bytes());
    return [into, p = parameter_](const StepContext& step) { step.communicator->start_gather(p, into); };
  }

 private:
  Type type_;
  int parameter_;
};

class FinishGather : public Op {
 public:
  explicit FinishGather(int parameter) : parameter_(parameter) {}
  std::string_view name() const override { return "finish_gather"; }
  std::string detail() const override { return fmt::format("parameter {}", parameter_); }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0]}; }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    invariant(o.in[0].data == o.out[0].data, "a gathered parameter stays where it arrives");
    const std::span<std::byte> into(o.out[0].data, o.out[0].type.bytes());
    return [into, p = parameter_](const StepContext& step) { step.communicator->finish_gather(p, into); };
  }

 private:
  int parameter_;
};

class Contribute : public Op {
 public:
  explicit Contribute(int parameter) : parameter_(parameter) {}
  std::string_view name() const override { return "contribute"; }
  int parameter() const { return parameter_; }
  std::string detail() const override { return fmt::format("parameter {}", parameter_); }
  std::vector<Type> infer(std::span<const Type>) const override { return {}; }
  Kernel compile(const Operands& o) const override {
    const std::span<const std::byte> gradient(o.in[0].data, o.in[0].type.bytes());
    return [gradient, p = parameter_](const StepContext& step) { step.communicator->contribute(p, step, gradient); };
  }

 private:
  int parameter_;
};

}  // namespace

void send(Graph& g, Value x, int message) { g.add(std::make_shared<Send>(message), {x}); }

Value receive(Graph& g, const Type& type, int message) {
  return g.add_one(std::make_shared<Receive>(type, message), {});
}

Value start_gather(Graph& g, const Type& type, int parameter) {
  return g.add_one(std::make_shared<StartGather>(type, parameter), {});
}

Value finish_gather(Graph& g, Value started, int parameter) {
  return g.add_one(std::make_shared<FinishGather>(parameter), {started});
}

int message_of(const Op& op) {
  if (const auto* send = dynamic_cast<const Send*>(&op)) return send->message();
  const auto* receive = dynamic_cast<const Receive*>(&op);
  return receive ? receive->message() : -1;
}

int contributes_to(const Op& op) {
  const auto* contribute = dynamic_cast<const Contribute*>(&op);
  return contribute ? contribute->parameter() : -1;
}

void contribute(Graph& g, Value gradient, int parameter) { g.add(std::make_shared<Contribute>(parameter), {gradient}); }

}  // namespace echelon::ops

namespace echelon {

void Communicator::start_gather(int, std::span<std::byte>) { invariant(false, "these ranks share no parameters"); }
void Communicator::finish_gather(int, std::span<std::byte>) { invariant(false, "these ranks share no parameters"); }
void Communicator::contribute(int, const StepContext&, std::span<const std::byte>) {
  invariant(false, "these ranks share no gradients");
}

}  // namespace echelon
