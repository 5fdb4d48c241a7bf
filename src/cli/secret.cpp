// `echelon secret`: what the machines of a job have in common, and nobody else knows.

#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "world/transport/tcp/join.h"

namespace echelon::cli {

void add_secret(Verb program) {
  const Verb verb = program.add_subcommand("secret", "Make the secret of a job on several machines");
  struct Settings {
    std::string path;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("file", s->path, "A new file, readable by its owner alone").required();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon secret job.secret\n"
      "  scp -p job.secret other:            then, on both: echelon train ... --nnodes 2 --secret-file job.secret\n"
      "docs/cluster.md shows a whole job, docs/security.md what the secret protects.");
  verb.action([s] {
    make_job_secret_file(s->path);
    if (s->json)
      fmt::print("{}\n", nlohmann::ordered_json{{"file", s->path}}.dump());
    else
      fmt::print("{}: 256 random bits, mode 0600. Copy it to every machine of the job (scp -p), and nowhere else\n",
                 s->path);
  });
}

}  // namespace echelon::cli
