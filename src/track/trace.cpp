#include "track/trace.h"

#include <cmath>

#include "base/json.h"

namespace echelon {

void Trace::Timeline::add(Name name, Name category, double begin, double end, std::initializer_list<Arg> args) {
  if (events_.size() == events_.capacity()) {
    ++dropped_;
    return;
  }
  Event event{begin, end, name, category, {}, 0};
  for (const Arg& arg : args)
    if (event.arg_count < most_args) event.args[event.arg_count++] = arg;
  events_.push_back(event);
}

Trace::Name Trace::name(std::string_view text) {
  if (const auto it = ids_.find(text); it != ids_.end()) return it->second;
  const auto id = static_cast<Name>(names_.size());
  names_.emplace_back(Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace));
  ids_.emplace(text, id);
  return id;
}

Trace::Timeline& Trace::timeline(int rank, int core, std::string_view label) {
  auto& timeline = timelines_[{rank, core}];
  if (!timeline) {
    timeline = std::make_unique<Timeline>();
    timeline->rank_ = rank;
    timeline->core_ = core;
    timeline->label_ = label.empty() ? fmt::format("core {}", core) : std::string(label);
    timeline->events_.reserve(capacity_);
  }
  return *timeline;
}

namespace {

// The file in pieces; the array's elements are separated here.
class Writer {
 public:
  explicit Writer(std::unique_ptr<File> file) : file_(std::move(file)) { text_ = "{\"traceEvents\":["; }
  void element(std::string_view json) {
    text_ += first_ ? "\n" : ",\n";
    text_ += json;
    first_ = false;
    if (text_.size() > (1u << 20)) flush();
  }
  void finish(std::string_view rest) {
    text_ += rest;
    flush();
    file_->sync();
  }

 private:
  void flush() {
    file_->append(std::as_bytes(std::span(text_)));
    text_.clear();
  }
  std::unique_ptr<File> file_;
  std::string text_;
  bool first_ = true;
};

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

void Trace::write(Disk& disk, const std::string& path) const {
  const std::string beside = path + ".new";
  Writer out(disk.create(beside));
  std::int64_t dropped = 0;
  int last_rank = -1;
  for (const auto& [key, timeline] : timelines_) {
    const auto [rank, core] = key;
    if (rank != last_rank)
      out.element(
          fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", rank, rank));
    last_rank = rank;
    out.element(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank, core,
                            Json(timeline->label_).dump(-1, ' ', false, Json::error_handler_t::replace)));
    double end = origin_;
    for (const auto& e : timeline->events_) {
      std::string args;
      for (std::uint32_t i = 0; i < e.arg_count; ++i)
        args += fmt::format("{}{}:{}", i ? "," : "", names_[e.args[i].key], json_number(e.args[i].value));
      out.element(fmt::format(
          R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})", names_[e.name],
          names_[e.category], rank, core, (e.begin - origin_) * 1e6, (e.end - e.begin) * 1e6, args));
      end = e.end;
    }
    if (timeline->dropped_ > 0)
      out.element(fmt::format(R"({{"ph":"i","s":"t","name":"{} more are not shown","pid":{},"tid":{},"ts":{:.3f}}})",
                              timeline->dropped_, rank, core, (end - origin_) * 1e6));
    dropped += timeline->dropped_;
  }
  out.finish(fmt::format("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped_events\":{}}}}}\n", dropped));
  disk.rename(beside, path);
}

}  // namespace echelon
