#include "parallel/planned/micro_tasks.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

TaskList::TaskList(int ranks, int shards) {
  for (int r = 0; r < ranks; ++r) left_.push_back(shards_of(r, ranks, shards));
}

int TaskList::take(int rank) {
  if (ShardRange& own = left_[static_cast<std::size_t>(rank)]; own.count() > 0) return own.first++;
  ShardRange& most = *std::ranges::max_element(left_, {}, [](const ShardRange& r) { return r.count(); });
  return most.count() > 0 ? --most.last : -1;
}

namespace {

constexpr int ask_tag = 0, answer_tag = 1;

}  // namespace

class MicroTasks::Scheduler {
 public:
  Scheduler(World& world, Mailbox& mailbox, int shards)
      : mailbox_(mailbox),
        ranks_(world.size()),
        shards_(shards),
        list_(ranks_, shards),
        task_(world.spawn("micro-tasks", [this, &world] {
          serve_messages(world, mailbox_, ask_tag, [this](const Message& message) { answer(message); });
        })) {}
  ~Scheduler() {
    mailbox_.shut(ask_tag);
    task_.reset();
  }

 private:
  void answer(const Message& message) {
    if (message.head.clock != step_) {
      list_ = TaskList(ranks_, shards_);
      step_ = message.head.clock;
    }
    mailbox_.post(message.from, {.tag = answer_tag,
                                 .key = static_cast<std::uint32_t>(list_.take(message.from) + 1),
                                 .clock = message.head.clock});
  }

  Mailbox& mailbox_;
  int ranks_, shards_;
  std::int64_t step_ = -1;
  TaskList list_;
  std::unique_ptr<Task> task_;  // last
};

MicroTasks::MicroTasks(Team& team, int shards)
    : world_(team.world()), mailbox_(team.world(), 0), wait_(team, mailbox_) {
  if (world_.rank() == 0) scheduler_ = std::make_unique<Scheduler>(world_, mailbox_, shards);
}

MicroTasks::~MicroTasks() = default;

std::optional<int> MicroTasks::next(std::int64_t step) {
  mailbox_.post(0, {.tag = ask_tag, .clock = step});
  Message message;
  wait_.take(answer_tag, message, "with the next micro-batch", [] { return 0; });
  if (message.head.clock != step) fail("rank 0 handed out a micro-batch of another step");
  if (message.head.key == 0) return std::nullopt;
  return static_cast<int>(message.head.key) - 1;
}

void MicroTasks::close() {
  mailbox_.close();
  scheduler_.reset();
}

// --- sums ---

namespace {

// Whether two neighbours are the two children of one node of the tree.
bool siblings(int shards, int first, int middle, int last) {
  int lo = 0, hi = shards;
  while (lo != first || hi != last) {
    if (hi - lo <= 1) return false;
    const int split = tree_split(lo, hi);
    if (last <= split)
      hi = split;
    else if (first >= split)
      lo = split;
    else
      return false;
  }
  return tree_split(lo, hi) == middle;
}

// Puts a shard among nodes in their order, and joins siblings; join(i): node i takes in the next one.
template <typename Node, typename Join>
void insert_shard(int shards, std::vector<Node>& nodes, Node leaf, const Join& join) {
  nodes.insert(std::ranges::lower_bound(nodes, leaf.first, {}, &Node::first), leaf);
  for (bool joined = true; joined;) {
    joined = false;
    for (std::size_t i = 0; i + 1 < nodes.size() && !joined; ++i)
      if (nodes[i].last == nodes[i + 1].first && siblings(shards, nodes[i].first, nodes[i].last, nodes[i + 1].last)) {
        join(i);
        nodes[i].last = nodes[i + 1].last;
        nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        joined = true;
      }
  }
}

}  // namespace

std::vector<ShardRange> TakenSums::nodes_of(int shards, std::span<const int> taken) {
  std::vector<ShardRange> nodes;
  for (const int shard : taken) insert_shard(shards, nodes, ShardRange{shard, shard + 1}, [](std::size_t) {});
  return nodes;
}

void TakenSums::add(int shard, std::span<const float> contribution) {
  float* memory = free_memory();
  std::ranges::copy(contribution, memory);
  used_.push_back(memory);
  insert_shard(shards_, sums_, PartialSum{shard, shard + 1, memory}, [&](std::size_t i) {
    const std::span<const PartialSum> both(&sums_[i], 2);
    float* into = *std::ranges::find(used_, both[0].data);
    sum_over_node({both[0].first, both[1].last}, both, 0, floats_, into);
    std::erase(used_, both[1].data);
  });
}

float* TakenSums::free_memory() {
  for (std::vector<float>& m : memory_)
    if (std::ranges::find(used_, m.data()) == used_.end()) return m.data();
  return memory_.emplace_back(floats_).data();
}

std::size_t TakenSums::bytes() const { return memory_.size() * floats_ * sizeof(float); }

}  // namespace echelon
