#pragma once
// In which buckets gradients go out while backward still runs. Small buckets start early but pay the latency of a
// message each; large ones wait for their last gradient. Pure arithmetic, the same on all ranks.

#include <cstddef>
#include <functional>
#include <vector>

namespace echelon {

struct Bucket {
  std::size_t begin = 0, end = 0;  // numbers of the flat buffer
};

struct ReadyPiece {  // a parameter: where it lies, and how long after the start of a step its gradient is there
  std::size_t begin, end;
  double seconds;
};

// When each of the buckets has been summed, if they go out one after another, each as soon as it is ready.
std::vector<double> finish_times(const std::vector<Bucket>& buckets, const std::vector<ReadyPiece>& pieces,
                                 const std::function<double(std::size_t bytes)>& cost);
// The last one.
double finish_time(const std::vector<Bucket>& buckets, const std::vector<ReadyPiece>& pieces,
                   const std::function<double(std::size_t bytes)>& cost);

// Neighbouring pieces joined into buckets of at least `bytes`, in the order in which they become ready.
std::vector<Bucket> fuse_pieces(const std::vector<ReadyPiece>& pieces, std::size_t bytes);

// The bucket size that finishes earliest, out of all powers of two.
std::vector<Bucket> choose_buckets(const std::vector<ReadyPiece>& pieces,
                                   const std::function<double(std::size_t bytes)>& cost);

}  // namespace echelon
