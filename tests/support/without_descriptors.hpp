// For tests that use up all descriptors of a process.
#pragma once

#include <gtest/gtest.h>

// First line of such a test. The release and tsan builds run it.
#ifdef __SANITIZE_ADDRESS__
#define MUSTER_NEEDS_NO_DESCRIPTOR_FOR_TYPE_CHECKS()                                                   \
  GTEST_SKIP() << "UBSan looks at types through pipes, and calls every one invalid once there are no " \
                  "descriptors left"
#else
#define MUSTER_NEEDS_NO_DESCRIPTOR_FOR_TYPE_CHECKS() static_cast<void>(0)
#endif
