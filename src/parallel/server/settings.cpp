#include "parallel/server/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory_size.h"
#include "parallel/server/chain.h"

namespace echelon::exchanges {

namespace {

int read_servers(OptionReader& options) {
  const auto given = options.options().items.find("servers");
  const auto* word = given == options.options().items.end() ? nullptr : std::get_if<std::string>(&given->second.value);
  if (!word) return static_cast<int>(options.integer("servers", 1, 1, 100'000));
  if (*word != "all")
    options.problem("servers", fmt::format("must be a whole number, at least 1, or \"all\", is \"{}\"", *word));
  options.ignore("servers");
  return 0;
}

void read_filters(OptionReader& options, ServerSettings& s) {
  FilterSettings& f = s.filters;
  for (const std::string& name : options.texts("filters", {})) {
    if (name == "significant")
      f.significant = true;
    else if (name == "skip")
      f.skip = 0.5;
    else
      options.problem("filters", fmt::format("has no '{}': take significant, skip or both", name));
  }
  if (f.significant) f.threshold = options.number("threshold", 1e-3, 0, 1);
  if (f.skip > 0) {
    f.skip = options.number("skip", 0.5, 1e-6, 0.99);
    f.unbiased = options.flag("unbiased", false);
  }
  if (f.any()) f.block = static_cast<std::size_t>(options.integer("block", 64, 1, 1 << 20));
}

void read_factors(OptionReader& options, ServerSettings& s) {
  s.factors = options.flag("factors", false);
  if (s.factors && s.filters.any())
    options.problem("factors", "are no gradient of which small numbers could be left out: leave out filters");
}

// "0@20": server 0 after 20 updates. "0.1@20": its first replica.
std::optional<ServerSettings::Death> read_death(std::string_view text) {
  const auto trimmed = [](std::string_view t) {
    while (!t.empty() && t.front() == ' ') t.remove_prefix(1);
    while (!t.empty() && t.back() == ' ') t.remove_suffix(1);
    return t;
  };
  const auto number = [](std::string_view t) {
    const bool digits = !t.empty() && t.size() < 10 && t.find_first_not_of("0123456789") == std::string_view::npos;
    return digits ? std::stoll(std::string(t)) : -1;
  };
  text = trimmed(text);
  const auto at = text.find('@');
  if (at == std::string_view::npos) return {};
  const std::string_view who = text.substr(0, at);
  const auto dot = who.find('.');
  const auto server = number(who.substr(0, dot));
  const auto position = dot == std::string_view::npos ? 0 : number(who.substr(dot + 1));
  const auto update = number(text.substr(at + 1));
  if (server < 0 || position < 0 || update < 0) return {};
  return ServerSettings::Death{static_cast<int>(server), static_cast<int>(position), update};
}

void read_replicas(OptionReader& options, ServerSettings& s) {
  s.replicas = static_cast<int>(options.integer("replicas", 1, 1, most_replicas));
  const std::string kill = options.text("kill_server", "");
  if (kill.empty()) return;
  for (std::size_t at = 0; at <= kill.size();) {
    const std::size_t end = std::min(kill.find(',', at), kill.size());
    const auto death = read_death(std::string_view(kill).substr(at, end - at));
    at = end + 1;
    if (!death)
      return options.problem("kill_server",
                             "is the number of a server and of its update, \"0@20\" for example; \"0.1@20\" is the "
                             "server's first replica; commas separate several");
    s.deaths.push_back(*death);
  }
  if (s.replicas < 2) options.problem("kill_server", "loses a server for good: set replicas to 2 or more");
  for (const ServerSettings::Death& d : s.deaths) {
    if (s.replicas > 1 && d.position >= s.replicas)
      options.problem("kill_server", fmt::format("names replica {}.{}, and a server's last one is number {}: set "
                                                 "replicas to {} or more",
                                                 d.server, d.position, s.replicas - 1, d.position + 1));
    const auto same_member = [&](const ServerSettings::Death& o) {
      return o.server == d.server && o.position == d.position;
    };
    if (std::ranges::count_if(s.deaths, same_member) > 1)
      return options.problem("kill_server", fmt::format("names {}.{} twice, and what is lost is not lost again: leave "
                                                        "out one of them",
                                                        d.server, d.position));
    const auto same_server = [&](const ServerSettings::Death& o) { return o.server == d.server; };
    if (s.replicas > 1 && std::ranges::count_if(s.deaths, same_server) >= s.replicas)
      return options.problem("kill_server",
                             fmt::format("leaves no member of server {}'s chain: set replicas to more than "
                                         "those that it loses",
                                         d.server));
  }
}

void read_overlay(OptionReader& options, ServerSettings& s) {
  const auto fanout = static_cast<int>(options.integer("fanout", 0, 0, 10'000));
  const bool two_level = options.flag("two_level", false);
  if (fanout > 0) s.overlay = {.kind = Overlay::Kind::tree, .fanout = fanout};
  if (two_level) s.overlay.kind = Overlay::Kind::hosts;
  if (fanout > 0 && two_level) options.problem("fanout", "and two_level exclude each other: leave out one of them");
  if (!s.is_flat() && (s.replicas > 1 || s.filters.any()))
    options.problem(
        s.overlay.kind == Overlay::Kind::tree ? "fanout" : "two_level",
        "adds pushes up on the way, and replicas and filters need those of single workers: leave these out");
  if (!s.is_flat() && s.factors)
    options.problem(
        "factors",
        "are of each worker's own samples, and pushes that are added up on the way have none: leave out fanout and "
        "two_level, or factors");
}

void read_sites(OptionReader& options, ServerSettings& s) {
  s.sites = static_cast<int>(options.integer("sites", 1, 0, 100'000));
  s.site_threshold = options.number("site_threshold", 0.01, 0, 1);
  s.site_barrier = static_cast<std::size_t>(options.integer("site_barrier", 65536, 0, std::int64_t{1} << 40));
  if (s.has_sites() && (!s.is_flat() || s.replicas > 1))
    options.problem("sites",
                    "have servers of their own, each with all pushes of its site: leave out fanout, two_level "
                    "and replicas, or sites");
}

}  // namespace

namespace {

void read_memory(OptionReader& options, ServerSettings& s) {
  const std::string text = options.text("memory", "");
  s.memory.folder = options.text("swap", "/tmp");
  if (text.empty()) return;
  const auto bytes = memory_size(text);
  if (!bytes)
    return options.problem("memory", fmt::format("is no size: \"{}\"; write 64MiB, 1.2GiB or a number of bytes", text));
  s.memory.bytes = *bytes;
  if (s.racing) options.problem("memory", "is for one core, and racing is for several: leave out one of them");
  if (s.factors)
    options.problem("memory", "holds gradients until they are summed, and factors are none: leave out one of them");
}

}  // namespace

ServerSettings read_server_settings(OptionReader& options) {
  ServerSettings s;
  s.servers = read_servers(options);
  s.planned = options.flag("planned", true);
  s.cache = options.flag("cache", false);
  s.racing = options.flag("racing", false);
  s.ring = static_cast<int>(options.integer("ring", 0, 0, 1000));
  read_filters(options, s);
  read_replicas(options, s);
  s.processes = options.flag("processes", false);
  if (s.processes && s.replicas < 2)
    options.problem("processes",
                    "lets a server die while training goes on, and nobody would have its weights: set replicas to 2 or "
                    "more, or leave out processes");
  read_factors(options, s);
  read_overlay(options, s);
  read_sites(options, s);
  read_memory(options, s);
  if (s.ring > 0 && s.factors)
    options.problem("ring", "cuts the model into segments, and factors are of whole parameters: leave out one of them");
  return s;
}

}  // namespace echelon::exchanges
