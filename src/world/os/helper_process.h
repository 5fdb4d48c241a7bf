#pragma once
// A process that does a part of this one's work on its own: it begins with a copy of this one's memory, and the two are
// joined by a stream of bytes in each direction. It dies with the thread that made it, and is killed when this object
// is destroyed. Ctrl-C and the like do not reach it.
//
// One thread writes and one reads; on either side.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace echelon {

class ByteStream {
 public:
  explicit ByteStream(int descriptor) : descriptor_(descriptor) {}
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  // All of it; they wait for the other side. False if it has ended.
  bool write(std::span<const std::byte> bytes);
  bool read(std::span<std::byte> bytes);
  // From now on both fail, here and on the other side, in calls that wait too.
  void shut();

 private:
  int descriptor_;
};

class HelperProcess {
 public:
  // Calls the body in the new process, on its only thread, and ends that process when it returns. Nothing but standard
  // input, output and error is open there. No other thread may hold what the body needs (memory may be allocated).
  // `name` (at most 15 characters) is what ps shows. Failure if it cannot be started.
  HelperProcess(const char* name, const std::function<void(ByteStream&)>& body);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;

  int process() const { return process_; }
  ByteStream& stream() { return *stream_; }
  std::string end();  // waits for it, and says how: "was killed by signal 9 (Killed)"

 private:
  int process_;
  std::unique_ptr<ByteStream> stream_;
  bool over_ = false;
};

[[noreturn]] void kill_this_process();  // as kill -9 would, for experiments

}  // namespace echelon
