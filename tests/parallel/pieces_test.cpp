// The parameters within a range of the model: what a codec with scales for each row sees of a matrix that was cut.

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "codec/piecewise.h"
#include "parallel/sum/coded_sum.h"

namespace echelon {
namespace {

std::set<std::size_t> ends_of_rows(const std::vector<CodecPiece>& pieces, std::size_t at) {
  std::set<std::size_t> ends;
  for (const std::size_t size : codecs::rows_of(pieces)) ends.insert(at += size);
  return ends;
}

TEST(PiecesWithin, CutAnywhereRowsEndWhereTheyEndedAndAtTheCuts) {
  const std::vector<CodecPiece> pieces{
      {.size = 7 * 11, .rows = 11}, {.size = 11}, {.size = 5 * 30, .rows = 30}, {.size = 9}};
  const std::size_t all = 77 + 11 + 150 + 9;
  const std::set<std::size_t> rows = ends_of_rows(pieces, 0);
  const Stream random({.seed = 5});
  for (std::size_t trial = 0; trial < 200; ++trial) {
    std::set<std::size_t> cuts{all};
    for (std::size_t k = 0; k < trial % 9; ++k) cuts.insert(1 + random.bits(16 * trial + k) % all);
    std::set<std::size_t> expected = rows, found;
    expected.insert(cuts.begin(), cuts.end());
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      // A cut of a cut too: what a server has of the model, and one of its keys.
      const std::size_t middle = (begin + end) / 2;
      const auto part = pieces_within(pieces, {begin, end});
      expected.insert(begin == middle ? end : middle);
      found.merge(ends_of_rows(pieces_within(part, {0, middle - begin}), begin));
      found.merge(ends_of_rows(pieces_within(part, {middle - begin, end - begin}), middle));
      begin = end;
    }
    ASSERT_EQ(found, expected) << trial;
  }
}

}  // namespace
}  // namespace echelon
