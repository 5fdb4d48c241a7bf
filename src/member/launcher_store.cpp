#include "member/launcher_store.h"

#include "member/memory_store.h"
#include "member/store_messages.h"
#include "world/os/clock.h"
#include "world/transport/tcp/note_server.h"

namespace echelon {

namespace {

constexpr double seconds_for_an_answer = 1;

class LauncherStore final : public RemoteStore {
 public:
  explicit LauncherStore(const TcpOptions& options) : client_(options, seconds_for_an_answer) {}

 protected:
  std::string ask(const std::string& question) override try { return client_.ask(question); } catch (const BadInput&) {
    throw;
  } catch (const Failure& problem) {
    throw StoreError(problem.what());
  }

 private:
  tcp::NoteClient client_;
};

}  // namespace

std::unique_ptr<ServiceProcess> hold_launcher_store(const TcpOptions& options) {
  tcp::check_secret(options);
  const int listener = tcp::listen_at_endpoint(options);
  if (listener < 0) return nullptr;
  auto service = std::make_unique<ServiceProcess>([&] {
    const auto clock = make_real_clock();
    MemoryStore store([&] { return clock->seconds(); });
    tcp::serve_notes(listener, options,
                     [&](const std::string& question) { return answer_store_question(store, question); });
  });
  tcp::close_listener(listener);
  return service;
}

std::unique_ptr<Store> make_launcher_store(const TcpOptions& options) {
  return std::make_unique<LauncherStore>(options);
}

}  // namespace echelon
