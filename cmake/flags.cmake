# Flags as interface targets: weir_flags for everything, weir_agent_flags for the program on top.
add_library(weir_flags INTERFACE)
target_compile_options(weir_flags INTERFACE
  -fno-common -fvisibility=hidden -ffp-contract=off
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wcast-qual
  -Wcast-align -Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes
  -Wmissing-declarations -Wvla -Wundef -Wformat=2 -Wwrite-strings -Wpointer-arith
  -Wnull-dereference -Wswitch-enum -Wimplicit-fallthrough
  -Werror=implicit -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=return-type)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weir_flags INTERFACE
    -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wjump-misses-init -Warith-conversion
    -Walloc-zero -Wcast-align=strict -Wtrampolines -Wbidi-chars=any)
elseif(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_flags INTERFACE -Wcomma -Wunreachable-code -Wassign-enum -Wthread-safety)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_DEV)
  target_compile_definitions(weir_flags INTERFACE WEIR_DEV=1)
endif()
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
elseif(WEIR_HARDEN)
  target_compile_options(weir_flags INTERFACE
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
  target_link_options(weir_flags INTERFACE
    -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs,--as-needed)
endif()

add_library(weir_agent_flags INTERFACE)
target_link_libraries(weir_agent_flags INTERFACE weir_flags)
target_compile_definitions(weir_agent_flags INTERFACE _GNU_SOURCE)
if(WEIR_HARDEN AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weir_agent_flags INTERFACE -ftrivial-auto-var-init=zero -fzero-call-used-regs=used-gpr)
endif()
