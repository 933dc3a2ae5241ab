// The errors that Ringlet's device rooms throw. One line each: the thing at fault, what is wrong
// with it and, where there is one, the remedy. Nothing below main() exits or prints.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace ringlet {

using At = std::source_location;

/// Base class: a message for the user, and the line of the source for whoever debugs it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, At at = At::current())
      : std::runtime_error(message), at_(at) {}
  const At& where() const noexcept { return at_; }

 private:
  At at_;
};

// Each class declares its own constructor: nvcc 13 fails on an inherited one with this default
// argument.

/// The caller broke a contract: a shape, type or layout that the operation does not take.
class ContractError : public Error {
 public:
  explicit ContractError(const std::string& message, At at = At::current()) : Error(message, at) {}
};

/// A device or one of its libraries is missing or failed.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message, At at = At::current()) : Error(message, at) {}
};

/// The device, or an arena on it, has not as much memory as was asked for.
class OutOfMemoryError : public DeviceError {
 public:
  explicit OutOfMemoryError(const std::string& message, At at = At::current())
      : DeviceError(message, at) {}
};

[[noreturn]] void throw_broken_contract(const char* operation, const char* message, At at);

/// Throws ContractError with "<operation>: <message>" unless `holds`.
/// Takes C strings so that a check that holds costs no allocation.
inline void require(bool holds, const char* operation, const char* message, At at = At::current()) {
  if (!holds) throw_broken_contract(operation, message, at);
}

/// What to tell the user: what() of the exception that is being handled. For memory, threads and
/// paths, of which the standard library says little, a message with a remedy. Call inside a catch
/// block.
std::string message_of_current_exception();

}  // namespace ringlet
