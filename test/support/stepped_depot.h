/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Renames the functions of lib/pool/depot/depot.c for tests that compile it
 * themselves. Include it before all other headers. See stepped.h.
 */
#ifndef SUPPORT_STEPPED_DEPOT_H
#define SUPPORT_STEPPED_DEPOT_H

#define mri_stack_init stepped_stack_init
#define mri_stack_push stepped_stack_push
#define mri_stack_pop stepped_stack_pop
#define mri_stack_pop_bulk stepped_stack_pop_bulk
#define mri_stack_n stepped_stack_n
#define mri_magazine_default stepped_magazine_default
#define mri_depot_init stepped_depot_init
#define mri_depot_grow stepped_depot_grow
#define mri_depot_fini stepped_depot_fini

#endif
