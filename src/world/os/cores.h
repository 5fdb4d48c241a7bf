#pragma once
// The cores of one worker: threads that run the same function together. Core 0 is the calling thread; the others spin
// briefly and then sleep while there is nothing to do (waking one costs tens of microseconds, spinning a tenth of one).
// The math libraries are kept at one thread on every core.
//
// run() is not re-entrant. If it throws on one core, the barriers of the others end with `Abandoned`, and run()
// rethrows the first real failure once all have returned.

#include <memory>
#include <type_traits>

namespace echelon {

class Cores {
 public:
  explicit Cores(int count);
  ~Cores();
  Cores(const Cores&) = delete;

  int count() const;
  // Calls work(core) on every core and returns when all are done. Allocates nothing.
  template <typename Work>
  void run(Work&& work) {
    run_job([](void* job, int core) { (*static_cast<std::remove_reference_t<Work>*>(job))(core); }, &work);
  }
  // Only inside run(): returns when every core has called it.
  void barrier();

 private:
  using Job = void (*)(void* work, int core);
  void run_job(Job job, void* work);

  struct Team;
  std::unique_ptr<Team> team_;
};

// The number of cores this process may use.
int available_cores();

}  // namespace echelon
