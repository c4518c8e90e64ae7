// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/gradients.h"

#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/optimizer/weight_update.h"
#include "vitrail/optim/chunks_internal.h"
#include "vitrail/optim/rules_internal.h"

namespace vitrail::optim {
namespace {

// Returns contiguous gradients in the order of the parameters; undefined for a parameter without a gradient.
std::vector<Tensor> gradients_of(const std::vector<Parameter>& parameters) {
  std::vector<Tensor> gradients;
  for (const Parameter& p : parameters) {
    const Tensor gradient = autograd::grad_of(p.tensor);
    if (gradient.defined() && gradient.dtype() != DType::f32 && gradient.dtype() != DType::f64) {
      throw Error("gradients", "f32 or f64", str(name_of(gradient.dtype()), " for '", p.name, "'"));
    }
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
  }
  return gradients;
}

// Calls body(chunk index, chunk, pointer to its first gradient element) in parallel.
template <class Body>
void for_each_chunk(const std::vector<Chunk>& chunks, const std::vector<Tensor>& gradients, Body body) {
  parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Tensor& gradient = gradients[chunks[c].parameter];
      if (!gradient.defined()) continue;
      dispatch_weights(gradient, [&](auto tag) {
        body(static_cast<size_t>(c), chunks[c], gradient.data<decltype(tag)>() + chunks[c].first);
      });
    }
  });
}

}  // namespace

double gradient_norm(const std::vector<Parameter>& parameters) {
  const std::vector<Chunk> chunks = make_chunks(parameters);
  std::vector<double> squares(chunks.size(), 0.0);
  for_each_chunk(chunks, gradients_of(parameters), [&](size_t c, const Chunk& chunk, const auto* g) {
    squares[c] = kernels::sum_of_squares(g, chunk.count);
  });
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  if (!(max_norm >= 0)) throw Error("clipping", "a norm of at least 0", str(max_norm));
  if (max_norm == 0 || !std::isfinite(norm)) return 1;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

double clip_gradients(const std::vector<Parameter>& parameters, double max_norm) {
  const double norm = gradient_norm(parameters), factor = clip_factor(norm, max_norm);
  if (factor == 1) return norm;
  std::vector<Tensor> gradients = gradients_of(parameters);
  for_each_chunk(make_chunks(parameters), gradients,
                 [&](size_t, const Chunk& chunk, auto* g) { kernels::scale(g, chunk.count, factor); });
  for (size_t i = 0; i < parameters.size(); ++i) {  // a strided gradient was scaled in a copy
    const Tensor gradient = autograd::grad_of(parameters[i].tensor);
    if (gradient.defined() && !gradient.is_contiguous()) gradient.copy_(gradients[i]);
  }
  return norm;
}

void clip_each_gradient(const std::vector<Parameter>& parameters, double max_norm) {
  for (const Parameter& parameter : parameters) clip_gradients({parameter}, max_norm);
}

}  // namespace vitrail::optim
