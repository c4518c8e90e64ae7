// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operation as a value: what the library knows of it.  docs/extending.md has an example.
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/onnx_operators.h"

namespace vitrail::ops {

// Operations that the rewrites of compiled programs and exports know.
enum class OpKind : uint8_t {
  other,
  linear,        // x, weight, [bias]
  residual_add,  // x, y, [scale]
  attention,     // q, k, v, [bias] → out, [weights]
  cat,           // inputs joined along an axis
  unfold,        // x [B, h, w, C] → its 3×3 neighbourhoods, (c, dy, dx)
};

// A tensor as a kernel sees it.
template <class T>
struct View {
  T* data = nullptr;               // the first element; null if the tensor is undefined
  const Tensor* tensor = nullptr;  // its shape and strides; it may be on the meta device
};

// The rows of a view whose rows are evenly spaced.
template <class T>
struct Rows {
  int64_t count, cols, ld;  // ld: from one row to the next, in elements

  explicit Rows(const View<T>& view) : cols(view.tensor->size(-1)), ld(cols) {
    count = cols ? view.tensor->numel() / cols : 0;
    int axis = view.tensor->rank() - 2;
    while (axis > 0 && view.tensor->size(axis) == 1) --axis;
    if (axis >= 0) ld = view.tensor->strides()[axis];
  }
};

// Computes results from inputs, in the order of apply().  An integer input has i64 data behind its pointer.  A kernel
// runs in several threads at once, and must use parallel_for() for its loops and no threads of another library.
template <class T>
using KernelOf = std::function<void(std::span<const View<const T>> in, std::span<const View<T>> out)>;

// A kernel for f32 and for f64.  A function of spans of floats alone has no f64 form: f64 is then computed in f32.
struct Kernel {
  KernelOf<float> f32;
  KernelOf<double> f64;

  Kernel() = default;
  template <class Function>
  requires(!std::same_as<Function, Kernel>) Kernel(Function function) : f32(function) {
    if constexpr (std::constructible_from<KernelOf<double>, Function>) f64 = std::move(function);
  }
};

using Tensors = std::vector<Tensor>;

// Maps the gradient of the first result, in any dtype, to one gradient per input, undefined for an input without one.
using Backward = std::function<Tensors(const Tensor& grad)>;

// A result after the first.
struct FurtherResult {
  Shape shape;
  std::optional<DType> dtype = {};  // that of the first result, unless given
};

struct Operation {
  std::string name = {};  // in errors, listings, profiles: "rms_norm"
  OpKind kind = OpKind::other;
  Shape shape = {};  // the contiguous result, which has the dtype of the first floating input
  std::vector<FurtherResult> further_results = {};

  // Eager computation calls it with contiguous inputs, a compiled program with inputs in the `layout`.
  Kernel kernel = {};
  KernelOf<float> half_kernel = {};  // the same for sessions whose attention has Precision::half, if there is another
  // Called after a computation, with the converted inputs and results: the function that computes the gradients.  It
  // holds what it needs.  Not set: there is no gradient.
  std::function<Backward(const Tensors& in, const Tensors& out)> gradient = {};
  Tensor (*layout)(const Tensor& x) = contiguous;  // inputs of a compiled step have it
  size_t integer_inputs = 0;                       // how many leading inputs are integers, such as token ids

  double flops = 0;                                            // 2 per multiply-add
  double bytes = 0;                                            // read and written; 0: all operands
  kernels::Activation activation = kernels::Activation::none;  // that of a linear layer
  int axis = 0;                                                // that of a concatenation
  int64_t stride = 1;                                          // that of an unfolding
  std::string text = {};           // in listings of programs, with settings: "patchify 16×16"; empty: the name
  std::string profile = {};        // in profiles: "layer norm"; empty: the name
  bool keeps_token_order = false;  // row i of the result [B, N, C] belongs to the token of row i of the first input
  bool in_place = false;           // the result may have the memory of the first input
  bool strided_result = false;     // the kernel also writes a strided result, such as a part of a concatenation
  bool plain_loop = false;         // the kernel is a loop in plain C++, which no instruction set changes

  // Returns the value of the result as operators of ONNX; empty if nothing reads it.  Not set: exports refuse it.
  std::function<std::string(OnnxValues& onnx, const Tensors& in, const Tensors& out)> onnx = {};
};

// Computes the operation: converts inputs to contiguous f32, or to f64 for an f64 input, runs the kernel, converts the
// results and connects autograd.  If an input is on the meta device, records the operation instead; results then are on
// the meta device.  Undefined inputs stay undefined.  The caller has checked shapes.  Throws Error for an input that is
// not floating.
Tensors apply_all(Operation operation, const Tensors& inputs);
Tensor apply(Operation operation, const Tensors& inputs);  // the first result

// The two halves of apply_all(), for operations that convert inputs by themselves.
Tensors recorded(Operation operation, const Tensors& inputs);
Tensors computed(const Operation& operation, const Tensors& inputs);

// Gradients of all inputs as a kernel: its inputs are the gradient of the result, then `saved`; its results are those
// of `in`, with null for inputs that are undefined or integers.
Backward backward_kernel(const Tensors& in, Tensors saved, Kernel kernel);

// Whether any of the tensors is defined and on the meta device.
bool symbolic(std::span<const Tensor> inputs);
inline bool symbolic(std::initializer_list<Tensor> inputs) { return symbolic(std::span(inputs)); }

}  // namespace vitrail::ops
