//! Function bodies: validation, and the cost of compiling them.
//!
//! The cost in Cranelift is not proportional to the size of a function. It keeps a table of every
//! local at every merge point of the control flow, and a value for every operand: a few kilobytes
//! of WebAssembly can require many gigabytes.

use kitbag_base::ByteSize;
use wasmparser::{
    BinaryReaderError, FuncToValidate, FuncValidatorAllocations, FunctionBody, Operator,
    ValidatorResources,
};

use crate::load_error::InvalidComponent;

/// Locals times merge points in one function. At the limit, the table takes about 1 GiB; the
/// interpreter loop of CPython has a tenth of it.
const CELLS: u64 = 1 << 27;

/// Operands and results of all instructions of one function. At the limit they take about 1 GiB;
/// compiled code has less than one per byte, and the limit is two per byte of the largest function.
const VALUES: u64 = 1 << 21;

/// The largest function that is compiled. The interpreter loop of CPython has a fifth of it;
/// compilation cost grows faster than the function.
const FUNCTION_BYTES: ByteSize = ByteSize::mib(1);

/// The highest compilation cost among the functions of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heaviest {
    cells: u64,
    values: u64,
    bytes: u64,
}

impl Heaviest {
    /// Returns how many functions may be compiled at once, so that together they take at most as
    /// much as the heaviest permitted one.
    #[cfg(any(feature = "compiler", test))]
    pub(crate) fn at_once(self) -> usize {
        let times = |heaviest: u64, limit: u64| limit / heaviest.max(1);
        let at_once = times(self.cells, CELLS)
            .min(times(self.values, VALUES))
            .min(times(self.bytes, FUNCTION_BYTES.as_u64()));
        usize::try_from(at_once).unwrap_or(usize::MAX)
    }
}

/// A problem with a function.
pub(super) enum FunctionProblem {
    Malformed(BinaryReaderError),
    Heavy(InvalidComponent),
}

impl From<BinaryReaderError> for FunctionProblem {
    fn from(error: BinaryReaderError) -> Self {
        Self::Malformed(error)
    }
}

/// Checks one function, and returns the validator's memory for the next one. Updates `heaviest`.
pub(super) fn check(
    function: FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    allocations: FuncValidatorAllocations,
    heaviest: &mut Heaviest,
) -> Result<FuncValidatorAllocations, FunctionProblem> {
    let size = ByteSize::bytes(body.range().len() as u64);
    if size > FUNCTION_BYTES {
        let limit = FUNCTION_BYTES;
        return Err(FunctionProblem::Heavy(InvalidComponent::LargeFunction { size, limit }));
    }
    let mut validator = function.into_validator(allocations);
    validator.read_locals(&mut body.get_binary_reader())?;
    let (mut meetings, mut values) = (1, 0);
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        // Before validation, which may leave the block that the instruction ends. An invalid
        // instruction has no arity and is refused next.
        let arity = operator.operator_arity(&validator.visitor(offset));
        let (taken, left) = arity.unwrap_or_default();
        validator.op(offset, &operator)?;
        // Each target receives the operands of the table.
        let times = match &operator {
            Operator::BrTable { targets } => u64::from(targets.len()) + 1,
            _ => 1,
        };
        values += times * (u64::from(taken) + u64::from(left));
        if values > VALUES {
            return Err(FunctionProblem::Heavy(InvalidComponent::HeavyFunction {
                what: "has more operands",
                limit: VALUES,
            }));
        }
        meetings += meeting_points(&operator);
    }
    operators.finish()?;
    let cells = u64::from(validator.len_locals()) * meetings;
    if cells > CELLS {
        return Err(FunctionProblem::Heavy(InvalidComponent::HeavyFunction {
            what: "has more locals times branches",
            limit: CELLS,
        }));
    }
    heaviest.cells = heaviest.cells.max(cells);
    heaviest.values = heaviest.values.max(values);
    heaviest.bytes = heaviest.bytes.max(size.as_u64());
    Ok(validator.into_allocations())
}

/// Returns the approximate number of blocks that an instruction creates in the compiler.
fn meeting_points(operator: &Operator<'_>) -> u64 {
    match operator {
        // Including the epoch check in each iteration.
        Operator::Loop { .. } => 4,
        // A table element may have to be initialized lazily.
        Operator::CallIndirect { .. }
        | Operator::ReturnCallIndirect { .. }
        | Operator::TableGet { .. }
        | Operator::If { .. } => 2,
        Operator::Block { .. }
        | Operator::Else
        | Operator::Br { .. }
        | Operator::BrIf { .. }
        | Operator::BrTable { .. }
        | Operator::BrOnNull { .. }
        | Operator::BrOnNonNull { .. } => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a component with these core functions, which is not a tool.
    #[track_caller]
    fn check(functions: &str, heavy: Option<&'static str>) {
        let text = format!("(component (core module {functions}))");
        let found =
            crate::inspect::check(&wat::parse_str(text).unwrap(), &crate::Support::ANY, || false);
        match (found, heavy) {
            (Err(InvalidComponent::NoRun { .. }), None) => {}
            (Err(InvalidComponent::HeavyFunction { what, .. }), Some(heavy)) if what == heavy => {}
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn locals_are_counted_per_block() {
        let function = |locals: usize, blocks: usize| {
            format!("(func (local{}) {})", " i32".repeat(locals), "(block)".repeat(blocks))
        };
        // The function itself is a block as well.
        check(&function(1 << 15, (1 << 12) - 1), None);
        check(&function(1 << 15, 1 << 12), Some("has more locals times branches"));
        // Each function is counted separately.
        check(&function(1 << 15, 1 << 11).repeat(4), None);
    }

    #[test]
    fn operands_are_counted_per_instruction() {
        let wide = " i32".repeat(1_000);
        let function = |calls: usize| {
            format!(
                "(func $f (param{wide}) (result{wide}) {} {})",
                "local.get 0 ".repeat(1_000),
                "call $f ".repeat(calls)
            )
        };
        // 2,000 for each call, 1,000 at the start and 2,000 at the end.
        check(&function(1_047), None);
        check(&function(1_048), Some("has more operands"));
    }

    #[test]
    fn operands_are_counted_per_table_target() {
        let wide = " i32".repeat(1_000);
        let function = |targets: usize| {
            format!(
                "(func (result{wide}) {} (br_table{}))",
                "i32.const 0 ".repeat(1_001),
                " 0".repeat(targets)
            )
        };
        check(&function(2_000), None);
        check(&function(2_200), Some("has more operands"));
    }

    #[test]
    fn heavy_functions_are_compiled_one_at_a_time() {
        let at_once = |cells, values, bytes| Heaviest { cells, values, bytes }.at_once();
        assert_eq!(at_once(0, 0, 0), 1 << 20);
        assert_eq!(at_once(CELLS, 1, 1), 1);
        assert_eq!(at_once(1, VALUES / 2, 1), 2);
        assert_eq!(at_once(1, 1, FUNCTION_BYTES.as_u64() / 2 + 1), 1);
        // The maximum over all functions is kept.
        let function = format!("(func (local{}) {})", " i32".repeat(100), "(block)".repeat(99));
        let text = format!("(component (core module (func) {function} (func)))");
        let bytes = wat::parse_str(text).unwrap();
        let heaviest =
            crate::inspect::read(&bytes, &crate::Support::ANY, || false).unwrap().unwrap().heaviest;
        assert_eq!((heaviest.cells, heaviest.bytes), (10_000, 301));
    }

    #[test]
    fn invalid_function_bodies_are_refused() {
        let text = "(component (core module (func (result i32))))";
        let found =
            crate::inspect::check(&wat::parse_str(text).unwrap(), &crate::Support::ANY, || false);
        assert!(matches!(found, Err(InvalidComponent::Malformed(_))), "{found:?}");
    }
}
