#include "vitrail/kernels/word_product.h"

#include <algorithm>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {

WordProduct::WordProduct(const float* bias, int64_t out, int64_t in, const Layout& layout)
    : layout_(layout),
      out_(out),
      in_(in),
      words_((in + layout.numbers - 1) / layout.numbers),
      panels_((out + layout.width - 1) / layout.width),
      weight_(zero_weights<int32_t>(columns() * words_)),
      bias_(zero_weights<float>(columns())) {
  if (bias) std::copy_n(bias, out, bias_.get());
}

size_t WordProduct::scratch_bytes(int64_t rows, int64_t fine_every) const {
  if (rows <= 0) return 0;
  return static_cast<size_t>(rows_of(rows, fine_every).places() * (layout_.heading + words_)) * sizeof(int32_t);
}

void WordProduct::run(const ProductArgs& args) const {
  if (args.rows <= 0) return;
  const WordRows rows = rows_of(args.rows, args.fine_every);
  const int64_t ldx = layout_.heading + words_;
  auto* const x = reinterpret_cast<int32_t*>(args.scratch) + layout_.heading;
  write_rows(args, rows, x);
  const int64_t flops = 2 * width() * in_ * rows.block();
  const int64_t grain = 1 + 400000 / (flops + 1);  // 400,000 operations take 2 µs: what it costs to wake a team
  for_each_tile_task(args.rows, rows.block(), panels_, width(), grain,
                     [&](int64_t first, int64_t count, int64_t panel, int64_t panels) {
                       const int64_t column = panel * width(), columns = std::min(panels * width(), out_ - column);
                       run_task({.x = x + rows.place(first) * ldx,
                                 .ldx = ldx,
                                 .fine = rows.fine_from(first),
                                 .panels = weight_.get() + column * words_,
                                 .words = words_,
                                 .width = width(),
                                 .add_panel = sums(),
                                 .bias = bias_.get() + column,
                                 .to = output_of(args, first, count, column, columns)},
                                column);
                     });
}

// What fills the last word is multiplied by the weight's zeros, and so must be finite.
void WordProduct::write_rows(const ProductArgs& args, const WordRows& rows, int32_t* x) const {
  const int64_t ldx = layout_.heading + words_;
  parallel_for(0, args.rows, 1 + 16384 / (in_ + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      int32_t* const words = x + rows.place(r) * ldx;
      int32_t* const rest = rows.is_fine(r) ? x + rows.place_of_rest(r) * ldx : nullptr;
      for (int32_t* const row : {words, rest}) {
        if (row && words_ > 0) row[words_ - 1] = 0;
      }
      write_row(args.x + r * args.ldx, words, rest);
    }
  });
}

}  // namespace vitrail::kernels
