#include "vitrail/kernels/attention.h"

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::kernels {

void attention(const AttentionArgs& args) {
  parallel_for(0, args.batch * args.heads, 1, [&](int64_t first, int64_t last) {
    std::vector<float> scores(args.keys);
    for (int64_t pair = first; pair < last; ++pair) {
      const int64_t b = pair / args.heads, h = pair % args.heads;
      auto at = [b, h](const auto& view, int64_t token) {
        return view.data + b * view.batch_stride + h * view.head_stride + token * view.token_stride;
      };
      for (int64_t t = 0; t < args.queries; ++t) {
        const float* q = at(args.q, t);
        for (int64_t s = 0; s < args.keys; ++s) {
          const float* k = at(args.k, s);
          float dot = 0;
          for (int64_t d = 0; d < args.head_dim; ++d) dot += q[d] * k[d];
          scores[s] = dot * args.scale;
          if (args.bias.data) {
            scores[s] +=
                args.bias.data[b * args.bias.batch_stride + h * args.bias.head_stride + t * args.bias.query_stride + s];
          }
        }
        scalar::softmax(scores.data(), scores.data(), 1, args.keys);
        if (args.weights) std::copy(scores.begin(), scores.end(), args.weights + (pair * args.queries + t) * args.keys);
        float* out = at(args.out, t);
        std::fill(out, out + args.head_dim, 0.0f);
        for (int64_t s = 0; s < args.keys; ++s) {
          const float* v = at(args.v, s);
          for (int64_t d = 0; d < args.head_dim; ++d) out[d] += scores[s] * v[d];
        }
      }
    }
  });
}

}  // namespace vitrail::kernels
