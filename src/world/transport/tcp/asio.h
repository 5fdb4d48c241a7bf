#pragma once
// The parts of Asio that this folder uses, without Boost. Only .cpp files of this folder and its private headers
// include it: it takes long to compile.

#define ASIO_STANDALONE      // NOLINT: Asio's own switches
#define ASIO_NO_DEPRECATED   // NOLINT
#define ASIO_HAS_CO_AWAIT 1  // NOLINT: this version looks for coroutines of clang where they were before C++20
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
