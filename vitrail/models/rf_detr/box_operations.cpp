// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/rf_detr/box_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/ops/operation.h"

namespace vitrail::models {
namespace {

// The numbers of the best rows of scores [rows, classes].  A score that is not a number is the lowest.
template <class T>
std::vector<int64_t> rows_with_best(const T* scores, int64_t rows, int64_t classes, int64_t count) {
  std::vector<T> best(static_cast<size_t>(rows), -std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < rows * classes; ++i) {
    T& row = best[static_cast<size_t>(i / classes)];
    if (scores[i] > row) row = scores[i];
  }
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const T left = best[static_cast<size_t>(a)], right = best[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

void check_boxes(const Tensor& boxes, const char* where) {
  if (boxes.rank() != 3 || boxes.size(2) != 4) throw Error(where, "boxes [B, N, 4]", boxes.shape().to_string());
}

}  // namespace

Tensor refined_boxes(const Tensor& boxes, const Tensor& deltas) {
  check_boxes(boxes, "refined_boxes");
  check_boxes(deltas, "refined_boxes");
  const int64_t batch = std::max(boxes.size(0), deltas.size(0)), rows = boxes.size(1);
  const auto fits = [&](const Tensor& x) { return x.size(1) == rows && (x.size(0) == batch || x.size(0) == 1); };
  if (!fits(boxes) || !fits(deltas))
    throw Error("refined_boxes", str("deltas for boxes ", boxes.shape()), deltas.shape().to_string());
  const int64_t of_boxes = boxes.numel(), of_deltas = deltas.numel();
  const auto kernel = [=](auto in, auto out) {
    auto* to = out[0].data;
    for (int64_t i = 0; i < batch * rows * 4; i += 4, to += 4) {
      const auto *box = in[0].data + i % of_boxes, *delta = in[1].data + i % of_deltas;
      for (int axis = 0; axis < 2; ++axis) {
        to[axis] = delta[axis] * box[2 + axis] + box[axis];
        to[2 + axis] = std::exp(delta[2 + axis]) * box[2 + axis];
      }
    }
  };
  const auto backward = [=](auto in, auto grads) {
    std::fill_n(grads[0].data, of_boxes, 0);
    std::fill_n(grads[1].data, of_deltas, 0);
    for (int64_t i = 0; i < batch * rows * 4; i += 4) {
      const auto *grad = in[0].data + i, *box = in[1].data + i % of_boxes, *delta = in[2].data + i % of_deltas;
      auto *of_box = grads[0].data + i % of_boxes, *of_delta = grads[1].data + i % of_deltas;
      for (int axis = 0; axis < 2; ++axis) {
        const auto size = box[2 + axis], factor = std::exp(delta[2 + axis]);
        of_box[axis] += grad[axis];
        of_box[2 + axis] += grad[axis] * delta[axis] + grad[2 + axis] * factor;
        of_delta[axis] += grad[axis] * size;
        of_delta[2 + axis] += grad[2 + axis] * factor * size;
      }
    }
  };
  const auto onnx = [](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    const auto half = [&](const Tensor& x, int64_t first) {
      return graph.slice(values.value_of(x), {2}, {first}, {first + 2});
    };
    const std::string size = half(in[0], 2);
    const std::string center = graph.node("Add", {graph.node("Mul", {half(in[1], 0), size}), half(in[0], 0)});
    const std::string scaled = graph.node("Mul", {graph.node("Exp", {half(in[1], 2)}), size});
    return graph.node("Concat", {center, scaled}, {{"axis", int64_t{2}}});
  };
  return ops::apply({.name = "refined_boxes",
                     .shape = {batch, rows, 4},
                     .kernel = kernel,
                     .gradient = [backward](const ops::Tensors& in,
                                            const ops::Tensors&) { return ops::backward_kernel(in, in, backward); },
                     .onnx = onnx},
                    {boxes, deltas});
}

Tensor best_boxes(const Tensor& scores, const Tensor& boxes, int64_t count) {
  check_boxes(boxes, "best_boxes");
  const int64_t batch = boxes.size(0), rows = boxes.size(1);
  if (scores.rank() != 3 || scores.size(0) != batch || scores.size(1) != rows || scores.size(2) < 1)
    throw Error("best_boxes", str("scores [", batch, ", ", rows, ", C]"), scores.shape().to_string());
  if (count < 1 || count > rows) throw Error("best_boxes", str("1 to ", rows, " boxes"), str(count));
  const int64_t classes = scores.size(2);
  const auto kernel = [=](auto in, auto out) {
    auto* to = out[0].data;
    for (int64_t b = 0; b < batch; ++b) {
      for (const int64_t row : rows_with_best(in[0].data + b * rows * classes, rows, classes, count))
        to = std::copy_n(in[1].data + (b * rows + row) * 4, 4, to);
    }
  };
  const auto onnx = [=](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    // The largest score of a row: the inputs of ReduceMax differ between opsets, those of MaxPool do not.
    const std::string best =
        graph.node("MaxPool", {values.value_of(in[0])}, {{"kernel_shape", ops::Ints{classes}}});  // [B, N, 1]
    const std::string order =
        graph.node("TopK", {best, graph.constant(ops::Ints{count})}, {{"axis", int64_t{1}}});  // [B, count, 1]
    return graph.node("GatherElements",
                      {values.value_of(in[1]), graph.node("Expand", {order, graph.constant(ops::Ints{1, 1, 4})})},
                      {{"axis", int64_t{1}}});
  };
  return ops::apply({.name = "best_boxes", .shape = {batch, count, 4}, .kernel = kernel, .onnx = onnx},
                    {scores, boxes});
}

Tensor best_rows(const Tensor& scores, int64_t count) {
  const int64_t batch = scores.size(0), rows = scores.size(1), classes = scores.size(2);
  if (count < 1 || count > rows) throw Error("best_rows", str("1 to ", rows, " boxes"), str(count));
  const Tensor values = scores.detach().to(DType::f32).contiguous(),
               chosen = Tensor::empty({batch * count}, DType::i64);
  int64_t* to = chosen.data<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    for (const int64_t row : rows_with_best(values.data<float>() + b * rows * classes, rows, classes, count))
      *to++ = b * rows + row;
  }
  return chosen;
}

std::vector<ScoredClass> best_classes(const Tensor& logits, int64_t count) {
  const float* const values = logits.data<float>();
  const int64_t classes = logits.size(1);
  std::vector<int64_t> order(static_cast<size_t>(logits.numel()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto last = order.begin() + std::min(logits.numel(), count);
  std::partial_sort(order.begin(), last, order.end(),
                    [&](int64_t a, int64_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  std::vector<ScoredClass> best;
  for (auto at = order.begin(); at != last; ++at)
    best.push_back({*at / classes, *at % classes, 1 / (1 + std::exp(-values[*at]))});
  return best;
}

Tensor sine_code(const Tensor& boxes, int64_t dim) {
  check_boxes(boxes, "sine_code");
  if (dim < 2 || dim % 2 != 0) throw Error("sine_code", "an even number of values", str(dim));
  const int64_t batch = boxes.size(0), queries = boxes.size(1);
  std::vector<double> frequencies;  // one for each pair of values
  for (int64_t j = 0; j < dim / 2; ++j) {
    const double exponent = 2 * static_cast<double>(j) / static_cast<double>(dim);
    frequencies.push_back(2 * std::numbers::pi / std::pow(10000.0, exponent));
  }
  const auto kernel = [=](auto in, auto out) {
    auto* to = out[0].data;
    using T = std::remove_reference_t<decltype(*to)>;
    for (int64_t i = 0; i < batch * queries; ++i) {
      for (const int64_t side : {1, 0, 2, 3}) {
        for (const double frequency : frequencies) {
          const double angle = static_cast<double>(in[0].data[4 * i + side]) * frequency;
          *to++ = static_cast<T>(std::sin(angle));
          *to++ = static_cast<T>(std::cos(angle));
        }
      }
    }
  };
  const auto backward = [=](auto in, auto grads) {
    const auto* grad = in[0].data;
    using T = std::remove_reference_t<decltype(*grads[0].data)>;
    for (int64_t i = 0; i < batch * queries; ++i) {
      for (const int64_t side : {1, 0, 2, 3}) {
        double sum = 0;
        for (const double frequency : frequencies) {
          const double angle = static_cast<double>(in[1].data[4 * i + side]) * frequency;
          const auto of_sine = static_cast<double>(*grad++), of_cosine = static_cast<double>(*grad++);
          sum += frequency * (of_sine * std::cos(angle) - of_cosine * std::sin(angle));
        }
        grads[0].data[4 * i + side] = static_cast<T>(sum);
      }
    }
  };
  const auto onnx = [=](ops::OnnxValues& values, const auto& in, const auto&) {
    ops::OnnxGraph& graph = values.graph();
    const Tensor each = Tensor::empty({dim / 2});
    for (size_t j = 0; j < frequencies.size(); ++j) each.data<float>()[j] = static_cast<float>(frequencies[j]);
    const std::string ordered =
        graph.node("Gather", {values.value_of(in[0]), graph.constant(ops::Ints{1, 0, 2, 3})}, {{"axis", int64_t{2}}});
    const std::string angles =
        graph.node("Mul", {graph.reshape(ordered, {-1, queries, 4, 1}), graph.constant(each, "sine_code.frequencies")});
    const auto wave = [&](const char* function) {
      return graph.reshape(graph.node(function, {angles}), {-1, queries, 4, dim / 2, 1});
    };
    const std::string pairs = graph.node("Concat", {wave("Sin"), wave("Cos")}, {{"axis", int64_t{4}}});
    return graph.reshape(pairs, {-1, queries, 4 * dim});
  };
  return ops::apply({.name = "sine_code",
                     .shape = {batch, queries, 4 * dim},
                     .kernel = kernel,
                     .gradient = [backward](const ops::Tensors& in,
                                            const ops::Tensors&) { return ops::backward_kernel(in, in, backward); },
                     .onnx = onnx},
                    {boxes});
}

}  // namespace vitrail::models
