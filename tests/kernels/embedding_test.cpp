#include "kernels/embedding.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(Embedding, GathersAndAddsBack) {
  on_every_target([] {
    for (const std::size_t dim : std::vector<std::size_t>{1, 3, 8, 17, 64, 65})
      for (const std::size_t count : std::vector<std::size_t>{0, 1, 9, 100}) {
        const std::size_t vocabulary = 7;  // ids repeat
        std::vector<std::int32_t> ids(count);
        for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int32_t>(i * 5 % vocabulary);
        const Fenced table = fenced_values(vocabulary * dim, 1), dy = fenced_values(count * dim, 2);
        Fenced got(count * dim), want(count * dim), dtable(table), want_dtable(table);
        embedding(table.data(), ids, got.data(), dim);
        ref_embedding(table.data(), ids, want.data(), dim);
        expect_same(got, want);
        embedding_grad(ids, dy.data(), dtable.data(), dim);
        ref_embedding_grad(ids, dy.data(), want_dtable.data(), dim);
        expect_same(dtable, want_dtable);
      }
  });
}

TEST(Embedding, PartsOfATableGiveWhatTheWholeGives) {
  on_every_target([] {
    const std::size_t vocabulary = 7, dim = 5, count = 20;
    std::vector<std::int32_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int32_t>(i * 5 % vocabulary);
    const Fenced table = fenced_values(vocabulary * dim, 1), dy = fenced_values(count * dim, 2);
    Fenced want(count * dim), want_dtable(vocabulary * dim), sum(count * dim), dtable(vocabulary * dim);
    ref_embedding(table.data(), ids, want.data(), dim);
    ref_embedding_grad(ids, dy.data(), want_dtable.data(), dim);
    for (const TableRows rows : {TableRows{0, 2}, TableRows{2, 1}, TableRows{3, 4}}) {
      Fenced part(count * dim);
      std::fill_n(part.data(), count * dim, 3.0f);  // rows that are not there are written too
      embedding_part(table.data() + rows.first * dim, ids, rows, part.data(), dim);
      for (std::size_t i = 0; i < count * dim; ++i) sum.data()[i] += part.data()[i];
      embedding_part_grad(ids, rows, dy.data(), dtable.data() + rows.first * dim, dim);
    }
    expect_same(sum, want);
    expect_same(dtable, want_dtable);
  });
}

TEST(Embedding, BadIdsAreFound) {
  const std::vector<std::int32_t> ids = {0, 6, 3, -1, 7};
  EXPECT_EQ(check_ids(ids, 7), 3);
  EXPECT_EQ(check_ids(ids, 3), 1);
  EXPECT_EQ(check_ids(std::span(ids).first(3), 7), -1);
  EXPECT_EQ(check_ids({}, 0), -1);
}

}  // namespace
}  // namespace echelon::kernels
