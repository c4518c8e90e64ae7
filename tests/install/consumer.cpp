// Uses the installed library: a tensor, its views, and a parallel loop.
#include <vitrail/base/parallel.h>
#include <vitrail/tensor/tensor.h>
#include <cstdio>

int main() {
  const vitrail::Tensor x = vitrail::Tensor::empty({2, 3});
  vitrail::parallel_for(0, 6, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) x.data<float>()[i] = static_cast<float>(i);
  });
  const vitrail::Tensor y = x.transpose(0, 1).contiguous();
  std::printf("%g\n", y.data<float>()[1]);
  return y.data<float>()[1] == 3 ? 0 : 1;
}
