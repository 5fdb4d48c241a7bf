// `echelon doctor`: what this installation and this machine have, what is missing, and the cure.

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/help/build_facts.h"
#include "cli/runs/run_status.h"
#include "cli/verbs.h"
#include "data/files/catalog.h"
#include "data/open.h"
#include "recipe/system_file.h"
#include "track/run.h"
#include "world/os/host.h"
#include "world/os/machine.h"
#include "world/transport/mpi/library.h"

namespace echelon::cli {

namespace {

enum class Health { good, note, bad };  // note: works, but something could be better or is not there

struct Finding {
  std::string what;
  Health health;
  std::string found, cure;  // cure is empty where nothing has to be done
};

constexpr std::size_t gib = std::size_t{1} << 30;

std::string size_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

bool in_path(Disk& disk, const std::string& program) {
  for (const std::string_view folder : split(environment("PATH"), ':'))
    if (!folder.empty() && disk.exists(std::string(folder) + "/" + program)) return true;
  return false;
}

void look_at_processor(const MachineFacts& m, std::vector<Finding>& out) {
  std::vector<std::string> has;
  for (const auto& [name, there] : m.features)
    if (there) has.push_back(name);
  const bool wide = m.has("avx2") && m.has("fma");
  out.push_back({"CPU", m.has("sse4.2") ? Health::good : Health::bad,
                 fmt::format("{}: {}", m.cpu.empty() ? "unknown" : m.cpu, fmt::join(has, " ")),
                 m.has("sse4.2") ? "" : "Echelon needs an x86-64-v2 processor (SSE4.2): use another machine"});
  const char* found = !wide ? "SSE4" : m.has("avx512bw") ? "AVX2 with FMA, AVX-512 for products" : "AVX2 with FMA";
  out.push_back({"kernels", wide ? Health::good : Health::note, found,
                 wide ? ""
                      : "without AVX2 and FMA training takes several times as long; in a virtual machine, let it "
                        "have the host's processor (-cpu host)"});
  const bool limited = m.cpu_quota > 0 && m.cpu_quota < m.usable_cores;
  std::string cores = fmt::format("{} of {}", m.usable_cores, m.hardware_threads);
  if (limited) cores += fmt::format(", but a control group allows {:.2g}", m.cpu_quota);
  out.push_back(
      {"cores", limited ? Health::note : Health::good, cores,
       limited ? fmt::format("use --cores {}, or give the container more", std::max(1, static_cast<int>(m.cpu_quota)))
               : ""});
}

void look_at_memory(const MachineFacts& m, std::vector<Finding>& out) {
  out.push_back({"memory", m.memory_free >= gib ? Health::good : Health::note,
                 fmt::format("{} free of {}", size_text(m.memory_free), size_text(m.memory)),
                 m.memory_free >= gib ? "" : "end other programs; `echelon models show NAME` says what a step needs"});
  const bool pages = m.huge_pages == "always" || m.huge_pages == "madvise";
  out.push_back(
      {"huge pages", pages ? Health::good : Health::note, m.huge_pages.empty() ? "the kernel has none" : m.huge_pages,
       pages || m.huge_pages.empty() ? "" : "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  const bool shared = m.shared_memory_free >= gib / 4;
  out.push_back({"shared memory", shared ? Health::good : Health::note,
                 size_text(m.shared_memory_free) + " free in /dev/shm",
                 shared ? "" : "MPI and other programs use it: in a container, start it with --shm-size=1g"});
  const bool files = m.open_files >= 1024;
  out.push_back({"open files", files ? Health::good : Health::note, fmt::format("{}", m.open_files),
                 files ? "" : "many workers over TCP need more: ulimit -n 4096"});
}

void look_at_network(Disk& disk, const MachineFacts& m, std::vector<Finding>& out) {
  const bool loop = m.loopback_problem.empty();
  out.push_back({"loopback", loop ? Health::good : Health::note, loop ? "127.0.0.1 answers" : m.loopback_problem,
                 loop ? "" : "--world tcp will not work: as root, ip link set lo up"});
  const std::string plugin = mpi::plugin_file();
  out.push_back(
      {"MPI plugin", plugin.empty() ? Health::note : Health::good,
       plugin.empty() ? "libechelon_mpi.so is not there" : plugin,
       plugin.empty() ? "only --world mpi needs it: apt install libopenmpi-dev, then build or install again" : ""});
  const bool mpirun = in_path(disk, "mpirun");
  out.push_back({"mpirun", mpirun ? Health::good : Health::note, mpirun ? "in the path" : "not in the path",
                 mpirun ? "" : "only --world mpi needs it: apt install openmpi-bin"});
}

void look_at_files(Disk& disk, std::vector<Finding>& out) {
  const std::size_t systems = system_names(disk).size();
  out.push_back({"systems", systems > 0 ? Health::good : Health::bad,
                 systems > 0 ? fmt::format("{} in recipes/systems", systems) : "no recipes/systems",
                 systems > 0 ? "" : "the installation is not whole: install it again (make install, or the package)"});
  try {
    const std::string digits = data::find_files(disk, *data::find_in_catalog("digits"), data::usual_places());
    out.push_back({"digits", Health::good, digits, ""});
  } catch (const BadInput& problem) {
    out.push_back({"digits", Health::note, problem.what(), "install again, or start in the repository"});
  }
  const std::string probe = fmt::format(".echelon-{}", process_id());
  try {
    disk.create(probe);
    disk.remove_all(probe);
    out.push_back({"this folder", Health::good, "can be written: runs/ will be made here", ""});
  } catch (const DiskError& problem) {
    out.push_back({"this folder", Health::note, problem.what(), "start elsewhere, or say where with --run DIR"});
  }
}

const char* word_of(Health health) { return health == Health::good ? "ok" : health == Health::note ? "note" : "bad"; }

}  // namespace

void add_doctor(Verb program) {
  const Verb verb = program.add_subcommand(
      "doctor", "What this machine and installation have, what is missing, the cure; or what went wrong in a run");
  auto json = std::make_shared<bool>(false);
  auto run = std::make_shared<std::string>(), root = std::make_shared<std::string>("runs");
  verb.add_option("run", *run, "A run: the last events of its workers, and what went wrong, also after a crash");
  verb.add_option("--root", *root, "Where runs are").show_default();
  verb.add_flag("--json", *json, "Print one JSON object");
  verb.footer(
      "Examples:\n"
      "  echelon doctor\n"
      "  echelon doctor demo-1        why did it end?\n"
      "Ends with 1 if something is missing without which nothing can be trained; notes do not count.");
  verb.action([json, run, root] {
    const auto disk = make_real_disk();
    if (!run->empty()) return show_autopsy(open_run(*disk, *root, *run).path, *json);
    const MachineFacts machine = look_at_machine();
    std::vector<Finding> all{{"build", Health::good, build_facts(), ""}};
    look_at_processor(machine, all);
    look_at_memory(machine, all);
    look_at_network(*disk, machine, all);
    look_at_files(*disk, all);
    const auto bad = std::ranges::count(all, Health::bad, &Finding::health);
    if (*json) {
      nlohmann::ordered_json j{{"healthy", bad == 0}};
      for (const Finding& f : all)
        j["findings"].push_back({{"what", f.what}, {"state", word_of(f.health)}, {"found", f.found}, {"cure", f.cure}});
      fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      for (const Finding& f : all) {
        fmt::print("{:5} {:14} {}\n", word_of(f.health), f.what, f.found);
        if (!f.cure.empty()) fmt::print("{:20} -> {}\n", "", f.cure);
      }
      fmt::print("{}\n",
                 bad == 0 ? "Everything that training needs is there." : "Training cannot work here: see above.");
    }
    if (bad > 0) throw EndWith{1};
  });
}

}  // namespace echelon::cli
