#include "parallel/sandblaster/pieces.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace echelon {

namespace {
enum PieceKind : std::uint16_t { asks_for_piece, piece_is_done, has_piece, no_piece, pieces_over };
}  // namespace

// Its task and rank 0's own thread take turns: a worker has no next piece before the task is done with its request.
class Pieces::Coordinator {
 public:
  Coordinator(World& world, Mailbox& mailbox, int pieces)
      : mailbox_(mailbox),
        copies_(static_cast<std::size_t>(pieces)),
        is_done_(static_cast<std::size_t>(pieces)),
        results_(static_cast<std::size_t>(pieces)),
        works_on_(static_cast<std::size_t>(world.size()), -1),
        done_by_(static_cast<std::size_t>(world.size())),
        task_(world.spawn("coordinator", [this, &world] {
          serve_messages(world, mailbox_, request_tag, [this](const Message& message) { handle(message); });
        })) {}
  ~Coordinator() {
    mailbox_.shut(request_tag);
    task_.reset();
  }

  const std::vector<PieceResult>& results() const { return results_; }
  std::int64_t duplicates() const { return duplicates_; }
  const std::vector<std::int64_t>& done_by() const { return done_by_; }

 private:
  void handle(const Message& message) {
    const auto worker = static_cast<std::size_t>(message.from);
    if (message.head.clock > evaluation_) begin(message.head.clock);
    if (message.head.kind == piece_is_done) finish(message, worker);
    if (message.head.kind != asks_for_piece) return;
    works_on_[worker] = message.head.clock == evaluation_ ? choose() : -1;
    const int piece = works_on_[worker];
    if (piece >= 0 && copies_[static_cast<std::size_t>(piece)]++ > 0) ++duplicates_;
    mailbox_.post(message.from, {.kind = piece >= 0 ? has_piece : no_piece,
                                 .tag = answer_tag,
                                 .key = static_cast<std::uint32_t>(std::max(0, piece)),
                                 .clock = message.head.clock});
  }

  void begin(std::int64_t evaluation) {
    evaluation_ = evaluation;
    next_ = 0, left_ = is_done_.size();
    std::ranges::fill(copies_, 0);
    std::ranges::fill(is_done_, 0);
    std::ranges::fill(works_on_, -1);
  }

  void finish(const Message& message, std::size_t worker) {
    const std::size_t piece = message.head.key;
    PieceResult result;
    if (piece >= is_done_.size() || message.payload().size() != sizeof result)
      fail("rank {} says that it did piece {} of {}", message.from, piece, is_done_.size());
    if (message.head.clock != evaluation_ || std::exchange(is_done_[piece], 1)) return;  // somebody was first
    std::memcpy(&result, message.payload().data(), sizeof result);
    results_[piece] = result;
    ++done_by_[worker];
    if (--left_ > 0) return;
    for (std::size_t w = 0; w < works_on_.size(); ++w)
      if (w != worker && works_on_[w] >= 0)
        mailbox_.post(static_cast<Rank>(w), {.kind = pieces_over, .tag = over_tag, .clock = evaluation_});
  }

  // The next one, or else of those that are under way the one that the fewest work on.
  int choose() {
    if (next_ < is_done_.size()) return static_cast<int>(next_++);
    int best = -1;
    for (std::size_t p = 0; p < is_done_.size(); ++p)
      if (!is_done_[p] && (best < 0 || copies_[p] < copies_[static_cast<std::size_t>(best)]))
        best = static_cast<int>(p);
    return best;
  }

  Mailbox& mailbox_;
  std::int64_t evaluation_ = 0, duplicates_ = 0;
  std::size_t next_ = 0, left_ = 0;
  std::vector<int> copies_;  // workers that have been given each piece
  std::vector<char> is_done_;
  std::vector<PieceResult> results_;
  std::vector<int> works_on_;          // by worker; -1: on none
  std::vector<std::int64_t> done_by_;  // by worker
  std::unique_ptr<Task> task_;         // last
};

Pieces::Pieces(Team& team, Mailbox& mailbox, int pieces)
    : world_(team.world()), mailbox_(mailbox), wait_policy_(team, mailbox) {
  if (world_.rank() == 0) coordinator_ = std::make_unique<Coordinator>(world_, mailbox, pieces);
}

Pieces::~Pieces() = default;

void Pieces::begin(std::int64_t evaluation) {
  evaluation_ = evaluation;
  over_ = false;
}

std::optional<int> Pieces::next() {
  mailbox_.post(0, {.kind = asks_for_piece, .tag = request_tag, .clock = evaluation_});
  Message message;
  world_.set_status("asking for a piece");
  wait_policy_.take(answer_tag, message, "with a piece", [] { return 0; });
  if (message.head.kind == has_piece) return static_cast<int>(message.head.key);
  return std::nullopt;
}

void Pieces::done(int piece, const PieceResult& result) {
  mailbox_.post(
      0, {.kind = piece_is_done, .tag = request_tag, .key = static_cast<std::uint32_t>(piece), .clock = evaluation_},
      std::as_bytes(std::span(&result, 1)));
}

bool Pieces::over() {
  for (Message message; !over_ && mailbox_.try_take(over_tag, message);) over_ = message.head.clock == evaluation_;
  return over_;
}

std::vector<PieceResult> Pieces::results() const { return coordinator_->results(); }
std::int64_t Pieces::duplicates() const { return coordinator_->duplicates(); }
std::vector<std::int64_t> Pieces::done_by() const { return coordinator_->done_by(); }

}  // namespace echelon
