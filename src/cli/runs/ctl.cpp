// `echelon ctl RUN ACTION`: asks something of a run that goes on (track/control.h).

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "track/control.h"
#include "world/os/folder_disk.h"
#include "world/os/folder_lock.h"
#include "world/os/tasks.h"

namespace echelon::cli {

namespace {

constexpr double between_looks = 0.05, longest_wait = 30;  // seconds

struct CtlSettings {
  std::string run, action, value, system, codec, plan, servers, root = "runs";
  bool json = false;
};

ControlRequest request_of(const CtlSettings& s) {
  const bool wants_value = s.action == "rate" || s.action == "resize";
  ControlRequest request{
      .action = s.action, .system = s.system, .codec = s.codec, .plan = s.plan, .servers = s.servers};
  if (s.action != "switch" && (!s.system.empty() || !s.codec.empty() || !s.plan.empty() || !s.servers.empty()))
    bad_input("--system, --codec, --plan and --servers belong to `echelon ctl RUN switch`");
  if (!wants_value && !s.value.empty()) bad_input("'{}' takes no value: leave out {}", s.action, s.value);
  if (wants_value) {
    const char* end = s.value.data() + s.value.size();
    const auto [rest, error] = std::from_chars(s.value.data(), end, request.value);
    if (error != std::errc() || rest != end)
      bad_input("{}", s.action == "rate" ? "rate wants a factor of the schedule's rate: `echelon ctl RUN rate 0.1`"
                                         : "resize wants a number of workers: `echelon ctl RUN resize 6`");
  }
  check_control(request);
  return request;
}

void ask(const CtlSettings& s) {
  const ControlRequest request = request_of(s);
  const RunFolder folder = open_run(*make_real_disk(), s.root, s.run);
  const auto disk = make_folder_disk(folder.path);
  if (lock_folder(folder.path)) bad_input("{}: nobody trains in it now, so there is nobody to ask", folder.path);
  send_control(*disk, folder, request);
  double waited = 0;
  for (; disk->exists(folder.control()) && waited < longest_wait; waited += between_looks) sleep_really(between_looks);
  const bool taken = waited < longest_wait;
  if (s.json)
    fmt::print("{}\n",
               nlohmann::ordered_json{{"run", folder.path}, {"action", request.action}, {"taken", taken}}.dump());
  else
    fmt::print("{}: {}{}\n", folder.path, request.action,
               taken ? " was taken; journal.jsonl has what was asked, and when"
                     : " waits: the run takes it between two steps, or when it goes on");
}

}  // namespace

void add_ctl(Verb program) {
  const Verb verb = program.add_subcommand("ctl", "Ask something of a run that goes on: pause, stop, resize, ...");
  auto s = std::make_shared<CtlSettings>();
  verb.add_option("run", s->run, "The run's folder, or its name in runs/").required();
  verb.add_option("action", s->action, "pause, resume, checkpoint, stop, rate FACTOR, resize WORKERS or switch")
      .required();
  verb.add_option("value", s->value, "The factor or the number of workers");
  verb.add_option("--system", s->system, "switch: the system that trains from now on (`echelon systems`)");
  verb.add_option("--codec", s->codec, "switch: the codec from now on (`echelon systems parts`)");
  verb.add_option("--plan", s->plan, "switch: how the model is split from now on (docs/plans.md); none: not at all");
  verb.add_option("--servers", s->servers, "switch: so many servers from now on; quickest: of those that were tried");
  verb.add_option("--root", s->root, "Where runs are").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n"
      "  echelon ctl demo-1 checkpoint\n"
      "  echelon ctl demo-1 pause            and later: echelon ctl demo-1 resume\n"
      "  echelon ctl demo-1 rate 0.1         a tenth of the schedule's rate from now on\n"
      "  echelon ctl demo-1 resize 6         another number of workers, of a run with --elastic: the same weights\n"
      "  echelon ctl demo-1 switch --system easgd     another system, of a run with --elastic; it goes on with the "
      "weights\n"
      "  echelon ctl demo-1 switch --plan zero=3      another plan: the same weights\n"
      "  echelon ctl demo-1 stop             saves and ends, as Ctrl-C does");
  verb.action([s] { ask(*s); });
}

}  // namespace echelon::cli
