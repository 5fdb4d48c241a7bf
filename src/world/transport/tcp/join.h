#pragma once
// The TCP world: ranks on machines that find each other at one address. docs/cluster.md shows how to use it,
// docs/security.md what protects it.
//
//     TcpOptions options;
//     options.endpoint = "10.0.0.1:29400";   // the same on all machines
//     options.bind = "10.0.0.2";             // this machine's address
//     options.secret_file = "job.secret";    // the same secret on all machines
//     options.min_nodes = options.max_nodes = 2;
//     options.per_node = 4;
//     run_on_tcp(options, {}, program);      // on each machine
//
// Errors: BadInput for what the user can cure (no secret, an address that is not ours, nodes that disagree); otherwise
// as in world/launch.h.

#include <functional>
#include <memory>
#include <string>

#include "world/launch.h"
#include "world/os/environment.h"
#include "world/transport/tcp/job_table.h"

namespace echelon {

struct TcpOptions {
  std::string endpoint = "127.0.0.1:29400";  // where the nodes meet: host:port
  std::string job_id = "echelon";            // several jobs may use one secret; they do not hear each other
  int min_nodes = 1, max_nodes = 1;          // the job begins when max have joined, or some seconds after min have
  int per_node = 1;                          // ranks on this machine
  int node_rank = -1;                        // the number of this node; 0 listens at the endpoint. -1: any
  std::string bind = "127.0.0.1";            // where this machine's ranks listen; 0.0.0.0 is every address
  std::string secret_file;                   // 64 hexadecimal digits, mode 0600; empty: $ECHELON_SECRET
  bool tls = false;                          // encrypt also on loopback; off the machine it is always done
  bool insecure = false;                     // do not encrypt off the machine either: anybody on the network between
                                             // the machines can read and change everything
  bool share_memory = true;                  // with ranks of the same machine, instead of connections to them
  double join_seconds = 300;                 // for min_nodes to join
  double last_call_seconds = 3;              // for more of them after that
  double silence_seconds = 2.2;              // after which a rank is lost
  bool transient = false;                    // this machine may be taken away (src/member): others hold the servers
  bool etcd = false;                         // the endpoint is an etcd's (src/member), not one of the nodes'
  std::function<void(const std::string&)> say = {};  // what a waiting node tells its user
};

// Starts `per_node` ranks on this machine (forks: call it while this process has one thread) and returns when they have
// all ended. One node needs no rendezvous, and without a secret it makes a fresh one. The ranks have torchrun's
// variables in their environment. SIGTERM and SIGINT are passed on to them; if this process dies, they are killed.
void run_on_tcp(const TcpOptions& options, const LaunchOptions& launch, const Program& program);

// A node of a job whose nodes come and go (src/member): it binds a port for each of its ranks and tells which; when
// somebody has made the table of a generation, it runs the ranks, once. BadInput as run_on_tcp.
class TcpNode {
 public:
  TcpNode(const TcpOptions& options, const LaunchOptions& launch);
  ~TcpNode();
  TcpNode(const TcpNode&) = delete;
  const tcp::NodeOffer& offer() const;
  void run(const tcp::JobTable& table, const Program& program);  // as run_on_tcp

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// This process becomes the rank that its environment says (started by torchrun, srun, a shell script). Unless
// `options.endpoint` says otherwise, the ranks meet at MASTER_ADDR:MASTER_PORT (Slurm: the first node, port 29400).
// Returns when the program has ended on all ranks.
void join_tcp(const TcpOptions& options, const RankEnvironment& place, const LaunchOptions& launch,
              const Program& program);

// A file with a new secret for a job, as 64 digits (mode 0600, BadInput if it exists).
void make_job_secret_file(const std::string& path);

}  // namespace echelon
