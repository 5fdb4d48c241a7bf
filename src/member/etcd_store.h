#pragma once
// A store in etcd (3.4 or later), through its HTTP/JSON gateway. What the nodes of a job keep there decides which of
// them form a generation, so whoever may write to that etcd may end the job; what the ranks send each other is
// protected by the job's secret all the same.

#include <memory>
#include <string>

#include "member/store.h"

namespace echelon {

// `endpoints`: "10.0.0.1:2379,10.0.0.2:2379": the next one is asked when one does not answer. BadInput if there is
// none. A lease has whole seconds: it is rounded up.
std::unique_ptr<Store> make_etcd_store(const std::string& endpoints);

}  // namespace echelon
