#pragma once
// A process beside the ranks that serves them: forked here, killed when this object is destroyed or when this process
// dies. Ctrl-C and the like do not reach it: whoever started it ends it, when nobody needs it any more.

#include <functional>

namespace echelon {

class ServiceProcess {
 public:
  // Call it while this process has one thread. The body does not return. Failure if it cannot be started.
  explicit ServiceProcess(const std::function<void()>& body);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;

 private:
  int process_;
};

}  // namespace echelon
