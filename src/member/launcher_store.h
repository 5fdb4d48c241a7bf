#pragma once
// The store that is built into the launcher: the first node that has the endpoint's address holds it, in a process of
// its own; all nodes ask it over connections that know the job's secret. It lives as long as that node's launcher.
// Where the nodes must survive the loss of any one of them, use etcd (member/etcd_store.h).

#include <memory>

#include "member/store.h"
#include "world/transport/processes/service.h"
#include "world/transport/tcp/join.h"

namespace echelon {

// Holds the store if this machine has the endpoint and nobody does yet; else null. Forks: call it while this process
// has one thread. BadInput as run_on_tcp.
std::unique_ptr<ServiceProcess> hold_launcher_store(const TcpOptions& options);

// Asks the store at the endpoint.
std::unique_ptr<Store> make_launcher_store(const TcpOptions& options);

}  // namespace echelon
