export interface Order {
  fruit: string;
  count: number;
}

/** Reads one order a line, as `2 apples`. */
export function parse(text: string): Order[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [count, fruit] = line.split(" ");
      return { fruit, count: Number(count) };
    });
}

/** How many of a fruit were ordered. */
export function total(orders: Order[], fruit: string): number {
  return orders.filter((order) => order.fruit === fruit).reduce((sum, order) => sum + order.count, 0);
}
