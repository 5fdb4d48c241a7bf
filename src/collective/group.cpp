#include "collective/group.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/group_state.h"

namespace echelon {

GroupState::GroupState(World& w, std::shared_ptr<GroupResources> r, std::shared_ptr<const Members> m, Channel c,
                       WaitOptions options)
    : world(w), resources(std::move(r)), members(std::move(m)), channel(c), wait_policy(w, std::move(options)) {
  index = members->find(world.rank());
  if (world.shared_memory() && size() > 1) {
    control = std::make_unique<ControlSegment>(world, fmt::format("group.{}.{}", channel, rank(0)), members, index);
    wait_policy.set_doubt([this] { control->check_same_operation(); });
  }
}

std::span<std::byte> GroupState::scratch(std::size_t bytes) {
  if (scratch_.bytes() < bytes) {
    scratch_ = {};  // the old one first: they need not exist together
    scratch_ = Buffer(bytes);
  }
  return {scratch_.data(), bytes};
}

std::span<const Range> GroupState::equal_parts(std::size_t count, std::size_t grain) {
  parts_.resize(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) parts_[static_cast<std::size_t>(i)] = part_of(i, size(), count, grain);
  return parts_;
}

const HostTopology& GroupState::hosts() {
  if (!hosts_) {
    const std::vector<int>& host = world.place().host;
    std::vector<int> of_member;
    for (int m = 0; m < size(); ++m) of_member.push_back(host.empty() ? 0 : host.at(static_cast<std::size_t>(rank(m))));
    hosts_ = host_topology_of(of_member, index);
  }
  return *hosts_;
}

CollectiveOperation::CollectiveOperation(Group& group, OperationKind kind, ElementType type, Reduction reduction,
                                         std::size_t count, std::string_view name)
    : state_(group.state()), exceptions_(std::uncaught_exceptions()) {
  label_ = {.kind = kind,
            .type = static_cast<std::uint8_t>(static_cast<unsigned>(type) | static_cast<unsigned>(reduction) << 4),
            .step = 0,
            .number = ++state_.number};
  state_.wait_policy.begin(label_, name);
  if (state_.control) state_.control->announce(label_, count);
}

CollectiveOperation::~CollectiveOperation() {
  if (std::uncaught_exceptions() == exceptions_) state_.wait_policy.end();
}

Label CollectiveOperation::label(int step) const {
  Label label = label_;
  label.step = static_cast<std::uint16_t>(step);
  return label;
}

Group::Group(std::unique_ptr<GroupState> state) : state_(std::move(state)) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

Group Group::everyone(World& world, WaitOptions wait_policy) {
  return Group(std::make_unique<GroupState>(world, std::make_shared<GroupResources>(),
                                            std::make_shared<Members>(world.size()), first_group_channel,
                                            std::move(wait_policy)));
}

World& Group::world() const { return state_->world; }
int Group::size() const { return state_->size(); }
int Group::index() const { return state_->index; }
Rank Group::rank_of(int member) const { return state_->rank(member); }
Channel Group::channel() const { return state_->channel; }
WaitPolicy& Group::wait_policy() { return state_->wait_policy; }

namespace {

struct SplitRequest {
  std::int64_t color, key;
  std::int64_t next_channel;  // the first that no group of this rank uses
};

}  // namespace

// The new group's channel is the largest of what the members have free: none of them uses it, though they may belong
// to different other groups.
Group Group::split(int color, int key) {
  const auto requests = all_gather_struct(*this, SplitRequest{color, key, state_->resources->next_channel}, "split");
  std::vector<int> chosen;
  std::int64_t channel = 0;
  for (int i = 0; i < size(); ++i) {
    const SplitRequest& request = requests[static_cast<std::size_t>(i)];
    channel = std::max(channel, request.next_channel);
    if (request.color == color) chosen.push_back(i);
  }
  std::ranges::stable_sort(chosen, {}, [&](int i) { return requests[static_cast<std::size_t>(i)].key; });
  std::vector<Rank> members;
  for (int i : chosen) members.push_back(rank_of(i));
  return derived(std::move(members), static_cast<Channel>(channel));
}

Group Group::dup() {
  Group other = split(0, 0);
  other.state_->link_costs = state_->link_costs;
  return other;
}

Group Group::derived(std::vector<Rank> members, Channel channel) {
  state_->resources->next_channel = channel + 1;
  return Group(std::make_unique<GroupState>(state_->world, state_->resources,
                                            std::make_shared<Members>(std::move(members)), channel,
                                            state_->wait_policy.options()));
}

std::span<std::byte> Group::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  auto block = std::make_unique<SharedBlock>();
  std::span<std::byte> mine;
  if (state_->control && bytes > 0) {
    // The members of a group count alike; the channel and the first member tell groups apart.
    const std::uint32_t number = ++state_->blocks_made;
    block->key = std::uint64_t{channel()} << 48 | std::uint64_t{static_cast<std::uint32_t>(rank_of(0))} << 24 | number;
    block->members = state_->members;
    block->stride = (bytes + page - 1) / page * page;
    block->all = world().shared_memory()->get(fmt::format("block.{:x}", block->key),
                                              block->stride * static_cast<std::size_t>(size()));
    mine = block->all.subspan(block->stride * static_cast<std::size_t>(index()), bytes);
  } else {
    block->own = Buffer(bytes);
    mine = {block->own.data(), bytes};
  }
  state_->resources->blocks.add(std::move(block));
  return mine;
}

}  // namespace echelon
