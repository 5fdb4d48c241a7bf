// Batches of requests: every answer has the bits of a sample asked for by itself, a full queue refuses, draining
// answers.
#include "serve/batcher.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "models/answer_batch.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "world/os/tasks.h"

namespace echelon::serve {
namespace {

struct Served {
  std::unique_ptr<models::Model> model;
  Graph graph;
  test::ModelMemory memory;
  Served(const std::string& name, const models::InputSpec& spec, const std::string& options)
      : model(models::make_model(name, spec, parse_toml(options, "test"))),
        graph(model->prediction(models::answer_group)),
        memory({&graph}) {}
};

const models::InputSpec small_digits = {
    .inputs = {{"image", f32({1, 28, 28})}}, .target = {"label", i32({})}, .classes = 10};

Rows sample_rows(std::uint32_t seed, std::size_t floats) {
  const Stream stream({.seed = seed, .step = 0, .shard = 0, .layer = 1});
  std::vector<float> x(floats);
  for (std::size_t i = 0; i < floats; ++i) x[i] = stream.uniform(i);
  Rows rows(floats * sizeof(float));
  std::memcpy(rows.data(), x.data(), rows.size());
  return rows;
}

// What predict says of a sample: it stands first in a batch of sixteen, of which the rest are zeros.
void expect_answers_as_alone(std::int64_t batch, std::uint64_t batches) {
  for (const std::string name : {"lenet5", "mlp", "resnet20"}) {
    Served s(name, small_digits, name == "mlp" ? "hidden = [33]" : name == "resnet20" ? "width = 4" : "");
    test::GraphRunner alone(s.graph, s.memory);
    Batcher batcher(*s.model, s.memory.table, s.memory.parameters.as<float>(),
                    {.batch = batch, .window_seconds = 600, .queue_seconds = 1e9, .deadline_seconds = 900});
    std::vector<std::vector<Rows>> answers(24);
    {
      std::vector<std::unique_ptr<Task>> clients;
      for (std::uint32_t i = 0; i < answers.size(); ++i)
        clients.push_back(spawn_thread("client", [&, i] { answers[i] = batcher.infer({sample_rows(i, 784)}, 1); }));
      for (auto& c : clients) c->join();
    }
    EXPECT_EQ(batcher.samples(), answers.size());
    EXPECT_EQ(batcher.batches(), batches);
    for (std::uint32_t i = 0; i < answers.size(); ++i) {
      const Rows x = sample_rows(i, 784);
      std::memcpy(alone.input<std::byte>("image").data(), x.data(), x.size());
      alone.run();
      for (std::size_t o = 0; o < batcher.outputs().size(); ++o) {
        const auto want = alone.output(batcher.outputs()[o].name);
        ASSERT_EQ(answers[i][o].size(), want.size() / models::answer_group * sizeof(float));
        EXPECT_EQ(std::memcmp(answers[i][o].data(), want.data(), answers[i][o].size()), 0) << name << " " << i;
      }
    }
  }
}

TEST(Batcher, GivesTheBitsOfASampleAloneInBatchesOfAnySize) {
  expect_answers_as_alone(1, 24);
  expect_answers_as_alone(8, 3);
  expect_answers_as_alone(24, 1);
}

TEST(Batcher, WhatIsWrongWithOneRequestIsNotToldToTheOthers) {
  const models::InputSpec text = {.inputs = {{"tokens", i32({5})}}, .target = {"targets", i32({5})}, .classes = 7};
  Served s("gpt", text, "width = 8\nheads = 2\nlayers = 1");
  Batcher batcher(*s.model, s.memory.table, s.memory.parameters.as<float>(),
                  {.batch = 2, .window_seconds = 600, .deadline_seconds = 900});
  const auto ids = [](std::int32_t last) {
    const std::int32_t all[] = {1, 2, 3, 4, last};
    Rows rows(sizeof all);
    std::memcpy(rows.data(), all, sizeof all);
    return rows;
  };
  std::size_t answered = 0;
  bool refused = false;
  {
    const auto good = spawn_thread("good", [&] { answered = batcher.infer({ids(5)}, 1).size(); });
    const auto bad = spawn_thread("bad", [&] {
      try {
        batcher.infer({ids(7)}, 1);
      } catch (const BadInput&) {
        refused = true;
      }
    });
    good->join(), bad->join();
  }
  EXPECT_GT(answered, 0u);
  EXPECT_TRUE(refused);
}

TEST(Batcher, PutsAnAdapterBetweenRequestsAndTheNetwork) {
  Served s("mlp", small_digits, "hidden = [9]");
  Batcher plain(*s.model, s.memory.table, s.memory.parameters.as<float>(), {.batch = 8});
  Adapter half;  // a request has doubled numbers
  half.inputs = {{"doubled", f32({784})}};
  half.prepare = [](const std::vector<Rows>& rows, std::int64_t) {
    Rows made = rows[0];
    for (std::size_t at = 0; at < made.size(); at += sizeof(float)) {
      float x;
      std::memcpy(&x, made.data() + at, sizeof x);
      x /= 2;
      std::memcpy(made.data() + at, &x, sizeof x);
    }
    return std::map<std::string, Rows>{{"image", made}};
  };
  half.finish["logits"] = [](Rows& rows) { rows.assign(rows.size(), std::byte{}); };
  Batcher adapted(*s.model, s.memory.table, s.memory.parameters.as<float>(), {.batch = 8}, half);
  EXPECT_EQ(adapted.inputs()[0].name, "doubled");
  const Rows x = sample_rows(1, 784);
  Rows twice = x;
  for (std::size_t at = 0; at < x.size(); at += sizeof(float)) {
    float v;
    std::memcpy(&v, x.data() + at, sizeof v);
    v *= 2;
    std::memcpy(twice.data() + at, &v, sizeof v);
  }
  const auto want = plain.infer({x}, 1), said = adapted.infer({twice}, 1);
  for (std::size_t o = 0; o < plain.outputs().size(); ++o) {
    const bool finished = plain.outputs()[o].name == "logits";
    EXPECT_EQ(said[o], finished ? Rows(want[o].size()) : want[o]);
  }
}

TEST(Batcher, AnswersSeveralSamplesOfOneRequestInTheirOrder) {
  Served s("mlp", small_digits, "hidden = [9]");
  Batcher batcher(*s.model, s.memory.table, s.memory.parameters.as<float>(), {.batch = 8});
  Rows three;
  std::vector<Rows> singles;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Rows one = sample_rows(i, 784);
    three.insert(three.end(), one.begin(), one.end());
    const auto answer = batcher.infer({one}, 1)[0];
    singles.push_back(answer);
  }
  Rows joined;
  for (const Rows& r : singles) joined.insert(joined.end(), r.begin(), r.end());
  EXPECT_EQ(batcher.infer({three}, 3)[0], joined);
  EXPECT_THROW(batcher.infer({three}, 9), BadInput);
}

TEST(Batcher, RefusesWhatTheQueueCannotHoldAndWhatComesAfterTheEnd) {
  Served s("mlp", small_digits, "hidden = [9]");
  // Without workers everything waits, until its deadline.
  Batcher batcher(*s.model, s.memory.table, s.memory.parameters.as<float>(),
                  {.batch = 4, .window_seconds = 0, .queue = 4, .workers = 0, .deadline_seconds = 1});
  std::vector<std::unique_ptr<Task>> clients;
  std::atomic<int> busy{0};
  for (int i = 0; i < 6; ++i)
    clients.push_back(spawn_thread("client", [&] {
      try {
        batcher.infer({sample_rows(1, 784)}, 1);
      } catch (const Busy&) {
        ++busy;
      }
    }));
  while (batcher.waiting() < 4 || batcher.refused() < 2) sleep_really(0.001);
  EXPECT_EQ(batcher.waiting(), 4);
  EXPECT_EQ(batcher.refused(), 2u);
  batcher.drain();
  EXPECT_THROW(batcher.infer({sample_rows(1, 784)}, 1), Busy);
  clients.clear();
  EXPECT_EQ(busy, 6) << "nobody is left to run what waited";
}

TEST(Batcher, AnswersWhatWaitsWhenItDrains) {
  Served s("mlp", small_digits, "hidden = [9]");
  std::atomic<int> answered{0};
  std::vector<std::unique_ptr<Task>> clients;
  {
    Batcher batcher(*s.model, s.memory.table, s.memory.parameters.as<float>(),
                    {.batch = 64, .window_seconds = 600, .deadline_seconds = 900});
    for (int i = 0; i < 3; ++i)
      clients.push_back(spawn_thread(
          "client", [&] { answered += static_cast<int>(batcher.infer({sample_rows(1, 784)}, 1).size() > 0); }));
    while (batcher.accepted() < 3) sleep_really(0.001);
    batcher.drain();
    clients.clear();
  }
  EXPECT_EQ(answered, 3);
}

TEST(Batcher, RefusesModelsWhoseAnswerDependsOnMoreThanTheSample) {
  const models::InputSpec text = {.inputs = {{"tokens", i32({5})}}, .target = {"targets", i32({5})}, .classes = 7};
  Served carried("char_lstm", text, "hidden = 4");
  EXPECT_THROW(Batcher(*carried.model, carried.memory.table, carried.memory.parameters.as<float>(), {}), BadInput);
  Served noisy("gan", small_digits, "width = 4\nlatent = 6");
  EXPECT_THROW(Batcher(*noisy.model, noisy.memory.table, noisy.memory.parameters.as<float>(), {}), BadInput);
}

TEST(Latency, FindsPercentilesToTenPerCent) {
  Latency l;
  EXPECT_EQ(l.percentile(0.5), 0);
  for (int i = 1; i <= 1000; ++i) l.add(i * 1e-4);
  EXPECT_NEAR(l.percentile(0.5), 0.05, 0.0055);
  EXPECT_NEAR(l.percentile(0.99), 0.099, 0.011);
  EXPECT_NEAR(l.sum(), 50.05, 0.01);
}

}  // namespace
}  // namespace echelon::serve
