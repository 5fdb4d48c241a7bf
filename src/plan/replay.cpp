#include "plan/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace echelon {

namespace {

struct Link {  // one message between two ranks
  struct Sent {
    int micro_batch;
    double arrives;
  };
  std::vector<Sent> sent;
  std::vector<double> received;  // when the receiver took it
};

class Player {
 public:
  Player(const PipelineSchedule& schedule, std::span<const StageMessage> messages, const ReplayCosts& costs)
      : schedule_(schedule), costs_(costs), ranks_(schedule.ranks.size()) {
    for (const StageMessage& m : messages)
      if (!m.inside_stage()) messages_.push_back(m);
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const StageTask& t : schedule.ranks[r])
        host_.emplace(std::pair(t.stage, t.micro_batch), static_cast<int>(r));
    result_.ranks.resize(ranks_.size());
  }

  Replay run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        while (advance(r)) moved = true;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next < schedule_.ranks[r].size())
        result_.stuck.push_back(fmt::format("rank {} never gets past {}: {}", r, to_string(task(r)), ranks_[r].waits));
      for (const TaskTime& t : result_.ranks[r]) result_.seconds = std::max(result_.seconds, t.end);
    }
    return std::move(result_);
  }

 private:
  struct Rank {
    std::size_t next = 0;
    bool begun = false;  // the next task has its inputs
    double begin = 0, free = 0;
    std::string waits;
  };
  const StageTask& task(std::size_t rank) const { return schedule_.ranks[rank][ranks_[rank].next]; }
  Link& link(std::size_t message, int from, int to) { return links_[{message, from, to}]; }
  int host(int stage, int micro_batch) const {
    const auto it = host_.find({stage, micro_batch});
    return it == host_.end() ? -1 : it->second;
  }
  const StageCost& cost(int stage) const { return costs_.stages[static_cast<std::size_t>(stage)]; }

  // One task's begin or end; false: it has to wait.
  bool advance(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.next == schedule_.ranks[r].size()) return false;
    return rank.begun ? finish(r, rank) : start(r, rank);
  }

  bool start(std::size_t r, Rank& rank) {
    const StageTask& t = task(r);
    double begin = rank.free;
    for (std::size_t k = 0; k < messages_.size(); ++k) {
      const StageMessage& m = messages_[k];
      if (m.to != t.stage || m.pass != t.pass || t.segment > 0) continue;
      const int from = host(m.from, t.micro_batch);
      const Link& l = link(k, from, static_cast<int>(r));
      if (l.sent.size() == l.received.size()) {
        rank.waits = fmt::format("it waits for {}", to_string(StageTask{m.pass, m.from, t.micro_batch}));
        return false;
      }
      const Link::Sent& next = l.sent[l.received.size()];
      if (next.micro_batch != t.micro_batch) {
        rank.waits = fmt::format("stage {} sends micro-batch {} first", m.from, next.micro_batch);
        return false;
      }
      begin = std::max(begin, next.arrives);
    }
    for (std::size_t k = 0; k < messages_.size(); ++k)
      if (messages_[k].to == t.stage && messages_[k].pass == t.pass && t.segment == 0)
        link(k, host(messages_[k].from, t.micro_batch), static_cast<int>(r)).received.push_back(begin);
    rank.begun = true;
    rank.begin = begin;
    return true;
  }

  bool finish(std::size_t r, Rank& rank) {
    const StageTask& t = task(r);
    const int segments = segments_of(schedule_.segments, t.stage, t.pass);
    const bool ends = t.segment + 1 == segments;
    double end = rank.begin + cost(t.stage).of(t.pass) / segments;
    for (std::size_t k = 0; k < messages_.size(); ++k) {
      const StageMessage& m = messages_[k];
      if (m.from != t.stage || m.pass != t.pass || !ends) continue;
      const int to = host(m.to, t.micro_batch);
      if (to == static_cast<int>(r)) continue;
      const Link& l = link(k, static_cast<int>(r), to);
      const auto buffers = static_cast<std::size_t>(buffers_of(m) * std::max(1, schedule_.per_update));
      if (l.sent.size() < l.received.size() + buffers) {
        if (l.sent.size() >= buffers) end = std::max(end, l.received[l.sent.size() - buffers]);
        continue;
      }
      rank.waits = fmt::format("stage {} has not taken micro-batch {}", m.to, l.sent[l.received.size()].micro_batch);
      return false;
    }
    for (std::size_t k = 0; k < messages_.size(); ++k) {
      const StageMessage& m = messages_[k];
      if (m.from == t.stage && m.pass == t.pass && ends)
        link(k, static_cast<int>(r), host(m.to, t.micro_batch))
            .sent.push_back({t.micro_batch, end + costs_.latency + m.bytes / costs_.bytes_per_second});
    }
    result_.ranks[r].push_back({t, rank.begin, end});
    rank.free = end;
    rank.begun = false;
    ++rank.next;
    return true;
  }

  const PipelineSchedule& schedule_;
  std::vector<StageMessage> messages_;
  const ReplayCosts& costs_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, int> host_;  // by stage and micro-batch
  std::map<std::tuple<std::size_t, int, int>, Link> links_;
  Replay result_;
};

}  // namespace

std::vector<StageMessage> chain_messages(int stages) {
  std::vector<StageMessage> messages;
  for (int s = 0; s + 1 < stages; ++s) {
    messages.push_back({s, s + 1, Pass::forward});
    messages.push_back({s + 1, s, Pass::backward});
  }
  return messages;
}

double Replay::busy(int rank) const {
  double sum = 0;
  for (const TaskTime& t : ranks[static_cast<std::size_t>(rank)]) sum += t.end - t.begin;
  return sum;
}

double Replay::bubble() const {
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) sum += busy(static_cast<int>(r));
  return seconds > 0 ? 1 - sum / (seconds * static_cast<double>(ranks.size())) : 0;
}

Replay replay(const PipelineSchedule& schedule, std::span<const StageMessage> messages, const ReplayCosts& costs) {
  return Player(schedule, messages, costs).run();
}

}  // namespace echelon
