#include "kernels/recurrent/recurrent_cell.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(RecurrentCell, EqualsItsReferenceForwardAndBackward) {
  on_every_target([] {
    for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu})
      for (const std::int64_t units : {1, 7, 8, 19})
        for (const bool with_dc : {false, true}) {
          const CellShape s{cell, 3, units};
          const auto n = static_cast<std::size_t>(s.batch * units);
          const std::size_t wide = n * static_cast<std::size_t>(gates(cell)),
                            kept = n * static_cast<std::size_t>(cell_saved(cell));
          const Fenced x = fenced_values(wide, 1, -3, 3), y = fenced_values(wide, 2, -3, 3),
                       before = fenced_values(n, 3, -1, 1), dh = fenced_values(n, 4), dc = fenced_values(n, 5);
          Fenced h(n), want_h(n), c(n), want_c(n), saved(kept), want_saved(kept);
          cell_forward(s, x.data(), y.data(), before.data(), h.data(), c.data(), saved.data());
          ref_cell_forward(s, x.data(), y.data(), before.data(), want_h.data(), want_c.data(), want_saved.data());
          expect_close(h, want_h, 1e-5, 1e-6);
          expect_close(c, want_c, 1e-5, 1e-6);
          expect_close(saved, want_saved, 1e-5, 1e-6);
          Fenced dx(wide), want_dx(wide), dy(wide), want_dy(wide), d_before(n), want_d_before(n);
          CellGrad g{.before = before.data(),
                     .h = h.data(),
                     .c = c.data(),
                     .saved = saved.data(),
                     .dh = dh.data(),
                     .dc = with_dc ? dc.data() : nullptr,
                     .d_from_x = dx.data(),
                     .d_from_h = dy.data(),
                     .d_before = d_before.data()};
          cell_backward(s, g);
          g.d_from_x = want_dx.data(), g.d_from_h = want_dy.data(), g.d_before = want_d_before.data();
          ref_cell_backward(s, g);
          expect_close(dx, want_dx, 1e-4, 1e-6);
          expect_close(dy, want_dy, 1e-4, 1e-6);
          expect_close(d_before, want_d_before, 1e-4, 1e-6);
        }
  });
}

}  // namespace
}  // namespace echelon::kernels
