// SPDX-License-Identifier: Apache-2.0
#pragma once
// A non-owning reference to a callable, like C++26's std::function_ref.

namespace vitrail {

template <class Signature>
class FunctionRef;

// Refers to any callable with these parameters; its result is ignored.  The callable must outlive the reference.
// Unlike std::function, it never allocates.
template <class... Args>
class FunctionRef<void(Args...)> {
 public:
  template <class Callable>
  FunctionRef(const Callable& callable)  // NOLINT(google-explicit-constructor): a lambda converts implicitly
      : callable_(&callable),
        call_([](const void* target, Args... args) { (*static_cast<const Callable*>(target))(args...); }) {}

  void operator()(Args... args) const { call_(callable_, args...); }

 private:
  const void* callable_;
  void (*call_)(const void*, Args...);
};

}  // namespace vitrail
