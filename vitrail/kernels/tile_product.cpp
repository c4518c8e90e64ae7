// PackedLinear by our own tiles.  The weight is packed in panels (tile-inl.h); a task is one block of rows of x by one
// panel, and the rows' epilogue follows while the products are in the first-level cache.
#include "vitrail/kernels/packed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/tile_product.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway.h: what is compiled for each target.
#include "vitrail/kernels/tile-inl.h"
#include "vitrail/kernels/vector_math-inl.h"

#ifndef VITRAIL_KERNELS_TILE_PRODUCT_ONCE
#define VITRAIL_KERNELS_TILE_PRODUCT_ONCE
namespace vitrail::kernels {
namespace {

// One panel's sums for a block of rows stay in the first-level cache beside a block of the panel:
// 96 rows × 64 B = 6 KiB and 256 × 64 B = 16 KiB of AVX2's 32 KiB (twice both with AVX-512).
constexpr int64_t kMostRows = 96;
constexpr int64_t kMostDepth = 256;

struct PanelTask {
  const float* x;
  int64_t ldx;
  const float* panel;  // [in][panel columns]
  const float* bias;   // [panel columns]
  int64_t in, rows, columns;
  float* y;
  int64_t ldy;
  Activation activation;
  Residual residual;  // from this task's first row and column on
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t columns_of_panel() { return panel_columns(); }

// weight's rows [first, first + columns), transposed, to [in][panel columns]; the columns beyond are 0.
void pack_panel(const float* weight, int64_t in, int64_t columns, float* panel) {
  const int64_t width = panel_columns();
  for (int64_t p = 0; p < in; ++p) {
    for (int64_t c = 0; c < width; ++c) panel[p * width + c] = c < columns ? weight[c * in + p] : 0.0f;
  }
}

template <Activation kind>
HWY_INLINE void finish_rows(const PanelTask& task, const float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < task.columns; c += lanes) {
    const int64_t left = std::min(task.columns - c, lanes);
    const bool whole = left == lanes;
    auto get = [&](const float* p) HWY_ATTR { return whole ? hn::LoadU(d, p) : load_first(d, p, left); };
    const auto bias = hn::Load(d, task.bias + c);
    const auto scale = task.residual.scale ? get(task.residual.scale + c) : hn::Set(d, 1.0f);
    for (int64_t r = 0; r < task.rows; ++r) {
      auto v = activate<kind>(d, hn::Add(hn::Load(d, sums + r * 2 * lanes + c), bias));
      if (task.residual.data) v = hn::MulAdd(scale, v, get(task.residual.data + r * task.residual.ld + c));
      float* const to = task.y + r * task.ldy + c;
      if (whole) {
        hn::StoreU(v, d, to);
      } else {
        store_first(d, v, to, left);
      }
    }
  }
}

void run_panel(const PanelTask& task) {
  HWY_ALIGN float sums[kMostRows * 2 * HWY_MAX_BYTES / sizeof(float)];
  const int64_t width = panel_columns();
  const int64_t blocks = std::max<int64_t>(1, (task.in + kMostDepth - 1) / kMostDepth);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = task.in * block / blocks, last = task.in * (block + 1) / blocks;
    multiply_panel(task.x + first, task.ldx, task.panel + first * width, last - first, task.rows, block > 0, sums,
                   width);
  }
  with_activation(task.activation, [&](auto kind) HWY_ATTR { finish_rows<kind()>(task, sums); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "hwy/aligned_allocator.h"
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

HWY_EXPORT(columns_of_panel);
HWY_EXPORT(pack_panel);
HWY_EXPORT(run_panel);

class TileProduct : public PackedProduct {
 public:
  TileProduct(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out),
        in_(in),
        width_(HWY_DYNAMIC_DISPATCH(columns_of_panel)()),
        panels_((out + width_ - 1) / width_),
        run_panel_(&HWY_DYNAMIC_DISPATCH(run_panel)),
        weight_(hwy::AllocateAligned<float>(std::max<int64_t>(1, panels_ * width_ * in))),
        bias_(hwy::AllocateAligned<float>(std::max<int64_t>(1, panels_ * width_))) {
    if (!weight_ || !bias_) throw std::bad_alloc();
    auto* const pack = &HWY_DYNAMIC_DISPATCH(pack_panel);
    parallel_for(0, panels_, 1 + 65536 / (width_ * in + 1), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        pack(weight + p * width_ * in, in, std::min(width_, out - p * width_), weight_.get() + p * width_ * in);
      }
    });
    for (int64_t c = 0; c < panels_ * width_; ++c) bias_[c] = bias && c < out ? bias[c] : 0.0f;
  }

  void run(const ProductArgs& args) const override {
    if (args.rows <= 0) return;
    // Tasks in order of rows, then panels: a thread goes through many panels with the same rows of x, which stay in
    // its second-level cache.
    const int64_t blocks = row_blocks(args.rows);
    const int64_t flops = 2 * width_ * in_ * (args.rows / blocks);
    const int64_t grain = 1 + 200000 / (flops + 1);  // 200,000 operations take 2 µs: what it costs to wake a team
    parallel_for(0, blocks * panels_, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t block = task / panels_, panel = task % panels_;
        run_panel_(panel_task(args, args.rows * block / blocks, args.rows * (block + 1) / blocks, panel));
      }
    });
  }

  void prepare(int64_t, int64_t, int64_t, Activation) const override {}
  size_t scratch_bytes(int64_t) const override { return 0; }
  size_t packed_bytes() const override { return static_cast<size_t>(panels_ * width_ * (in_ + 1)) * sizeof(float); }

 private:
  int64_t row_blocks(int64_t rows) const {
    constexpr int64_t kBlockBytes = 256 << 10;  // half of Zen 3's second-level cache
    const int64_t by_cache = std::max<int64_t>(12, kBlockBytes / (static_cast<int64_t>(sizeof(float)) * (in_ + 1)));
    const int64_t most = std::min(kMostRows, by_cache);
    return (rows + most - 1) / most;
  }

  PanelTask panel_task(const ProductArgs& args, int64_t first, int64_t last, int64_t panel) const {
    const int64_t column = panel * width_;
    Residual residual = args.residual;
    if (residual.data) residual.data += first * residual.ld + column;
    if (residual.scale) residual.scale += column;
    return {.x = args.x + first * args.ldx,
            .ldx = args.ldx,
            .panel = weight_.get() + column * in_,
            .bias = bias_.get() + column,
            .in = in_,
            .rows = last - first,
            .columns = std::min(width_, out_ - column),
            .y = args.y + first * args.ldy + column,
            .ldy = args.ldy,
            .activation = args.activation,
            .residual = residual};
  }

  int64_t out_, in_, width_, panels_;
  void (*run_panel_)(const PanelTask&);
  hwy::AlignedFreeUniquePtr<float[]> weight_, bias_;
};

}  // namespace

std::unique_ptr<PackedProduct> make_tile_product(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<TileProduct>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
#endif
